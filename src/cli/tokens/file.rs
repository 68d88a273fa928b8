//! The tokenizer that the user names: where it lies, and what it says of the words of prompts.
//!
//! Nothing is fetched. A name that is no file and no folder is looked up in the local cache of Hugging Face.

#[cfg(any(feature = "tokenizer", test))]
use std::path::{Path, PathBuf};

use crate::plan::Found;
use crate::workload::measure::Wish;

/// Whether this build has tokenizers.
pub(super) const IS_BUILT: bool = cfg!(feature = "tokenizer");

/// What `name` finds.
#[cfg(feature = "tokenizer")]
pub(super) fn measured(name: &str, wish: &Wish<'_>) -> Result<Found, String> {
    use crate::workload::measure::measure;
    use crate::workload::tokenizer::Tokenizer;

    let said = |why: &dyn std::fmt::Display| format!("--tokenizer {name}: {why}");
    let path = located(name, &|name| std::env::var_os(name).map(PathBuf::from)).map_err(|why| said(&why))?;
    let text = std::fs::read(&path).map_err(|error| said(&format!("{}: {error}", path.display())))?;
    let tokenizer = Tokenizer::read(&text).map_err(|why| {
        said(&format!("{} is no tokenizer: {why}; name a tokenizer.json of Hugging Face", path.display()))
    })?;
    let further = tokenizer.words();
    let found = measure(&mut |text| tokenizer.tokens(text), &Wish { further: &further, ..wish.clone() });
    let found = found.map_err(|unfit| said(&format!("{unfit}; leave it out, and prompts are words")))?;
    // What the file says until the server does. Chats have their marks in the template.
    let added = if wish.in_template || wish.ids { 0 } else { tokenizer.added() };
    Ok(Found { added, ..found })
}

/// Without the feature nothing is looked for.
#[cfg(not(feature = "tokenizer"))]
pub(super) fn measured(name: &str, _wish: &Wish<'_>) -> Result<Found, String> {
    Err(format!("--tokenizer {name}: this build has no tokenizers"))
}

/// The `tokenizer.json` that `name` means; `env` gives the paths in environment variables.
#[cfg(any(feature = "tokenizer", test))]
fn located(name: &str, env: &dyn Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, String> {
    let path = Path::new(name);
    if path.is_dir() {
        let inside = path.join(FILE);
        return if inside.is_file() { Ok(inside) } else { Err(format!("the folder has no {FILE}")) };
    }
    if path.exists() {
        return Ok(path.to_owned());
    }
    let Some((organisation, model)) = name.split_once('/').filter(|(_, model)| !model.contains('/')) else {
        return Err(format!(
            "there is no such file; name a {FILE}, a folder of one, or ORG/NAME of the local cache"
        ));
    };
    let Some(cache) = cache(env) else {
        return Err("there is no local cache of Hugging Face to look in (HF_HOME, HOME)".to_owned());
    };
    let snapshots = cache.join(format!("models--{organisation}--{model}")).join("snapshots");
    newest(&snapshots).ok_or_else(|| {
        let place = snapshots.display();
        format!("no {FILE} in {place}, and nothing is fetched; download it, or name the file")
    })
}

/// Where models lie that were fetched before.
#[cfg(any(feature = "tokenizer", test))]
fn cache(env: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name: &str| env(name).filter(|path| !path.as_os_str().is_empty());
    set("HF_HUB_CACHE")
        .or_else(|| set("HUGGINGFACE_HUB_CACHE"))
        .or_else(|| Some(set("HF_HOME")?.join("hub")))
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("huggingface/hub")))
        .or_else(|| Some(set("HOME")?.join(".cache/huggingface/hub")))
}

/// The file in the snapshot that was written last.
#[cfg(any(feature = "tokenizer", test))]
fn newest(snapshots: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(snapshots).ok()?.filter_map(|entry| {
        let file = entry.ok()?.path().join(FILE);
        let modified = std::fs::metadata(&file).and_then(|data| data.modified()).ok()?;
        Some((modified, file))
    });
    files.max().map(|(_, file)| file)
}

#[cfg(any(feature = "tokenizer", test))]
const FILE: &str = "tokenizer.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_file_a_folder_or_a_model_of_the_cache() {
        let home = tempfile::tempdir().unwrap();
        let cached = home.path().join(".cache/huggingface/hub/models--org--model/snapshots/abc");
        std::fs::create_dir_all(&cached).unwrap();
        std::fs::write(cached.join(FILE), "{}").unwrap();
        let env = |name: &str| (name == "HOME").then(|| home.path().to_owned());
        let of = |name: &str| located(name, &env);
        assert_eq!(of("org/model").unwrap(), cached.join(FILE));
        assert_eq!(of(cached.to_str().unwrap()).unwrap(), cached.join(FILE));
        assert_eq!(of(cached.join(FILE).to_str().unwrap()).unwrap(), cached.join(FILE));
        assert!(of("org/other").unwrap_err().contains("nothing is fetched"));
        assert!(of("nowhere.json").unwrap_err().contains("no such file"));
        assert!(of(home.path().to_str().unwrap()).unwrap_err().contains("folder has no"));
        // The nearer setting wins.
        let hub = home.path().join("hub");
        let env = |name: &str| match name {
            "HF_HOME" => Some(home.path().to_owned()),
            "HOME" => Some("/nowhere".into()),
            _ => None,
        };
        assert_eq!(cache(&env), Some(hub));
        assert!(located("org/model", &|_| None).unwrap_err().contains("HF_HOME"));
    }
}
