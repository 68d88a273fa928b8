//! Azure's LLM inference traces of 2023 and 2024, and the multimodal one of 2025.

use super::csv::{Column, Row};
use super::entry::{Entry, Prompt};
use super::error::Fault;
use super::{numbers, timestamp};

/// Where the columns are.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    time: Column,
    context: Column,
    generated: Column,
    images: Option<Column>,
}

impl Columns {
    pub(super) fn of(header: Row<'_>, with_images: bool) -> Result<Columns, Fault> {
        Ok(Columns {
            time: header.needed("TIMESTAMP")?,
            context: header.needed("ContextTokens")?,
            generated: header.needed("GeneratedTokens")?,
            images: with_images.then(|| header.needed("NumImages")).transpose()?,
        })
    }

    pub(super) fn read(&self, row: Row<'_>) -> Result<Entry, Fault> {
        let count = row.read(&self.context, numbers::count)?;
        let images = self.images.as_ref().map(|column| row.read(column, numbers::count)).transpose()?;
        Ok(Entry {
            at: Some(row.read(&self.time, timestamp::nanos)?),
            output_tokens: Some(row.read(&self.generated, numbers::count)?),
            images: images.unwrap_or(0),
            ..Entry::new(Prompt::Tokens { count, blocks: None })
        })
    }
}
