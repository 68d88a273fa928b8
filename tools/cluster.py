#!/usr/bin/env python3
"""Whether the files of tools/cluster are what their schedulers take.

    python3 -m venv VENV && VENV/bin/pip install kubernetes-validate
    VENV/bin/python tools/cluster.py

The manifest is held to the schemas of Kubernetes (strictly: a field that is unknown is an error), and to what makes a run
of it: as many pods as it says there are, whole CPUs with requests equal to limits, and the output on the volume. The script
for Slurm is parsed by bash.
"""
import pathlib
import subprocess
import sys

import kubernetes_validate
import yaml

FOLDER = pathlib.Path(__file__).parent / "cluster"
VERSION = "1.33"


def main():
    manifest = FOLDER / "tokload-job.yaml"
    documents = list(yaml.safe_load_all(manifest.read_text()))
    for document in documents:
        version = kubernetes_validate.validate(document, VERSION, strict=True)
        print(f"{manifest.name}: {document['kind']} is one of Kubernetes {version}")
    # A schema that takes anything would prove nothing.
    broken = dict(documents[1], spec=dict(documents[1]["spec"], completions="four"))
    try:
        kubernetes_validate.validate(broken, VERSION, strict=True)
        sys.exit("the schema takes a Job of 'four' completions")
    except kubernetes_validate.ValidationError:
        pass

    claim, job = documents
    spec = job["spec"]
    [container] = spec["template"]["spec"]["containers"]
    env = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert spec["completionMode"] == "Indexed", "the pods have no index"
    assert spec["completions"] == spec["parallelism"] == int(env["TOKLOAD_COMPLETIONS"]), "numbers of pods differ"
    resources = container["resources"]
    assert resources["requests"] == resources["limits"], "without requests equal to limits no core is the pod's own"
    assert str(resources["limits"]["cpu"]).isdigit(), "a fraction of a CPU is not pinned"
    output = container["args"][container["args"].index("--output-file") + 1]
    [mount] = container["volumeMounts"]
    [volume] = spec["template"]["spec"]["volumes"]
    assert output.startswith(mount["mountPath"] + "/") and mount["name"] == volume["name"], "the output is on no volume"
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"], "the claim has another name"
    assert "ReadWriteMany" in claim["spec"]["accessModes"], "one pod alone could write"
    print(f"{manifest.name}: {spec['completions']} pods of {resources['limits']['cpu']} CPUs, {output} on {volume['name']}")

    script = FOLDER / "tokload.sbatch"
    subprocess.run(["bash", "-n", str(script)], check=True)
    print(f"{script.name}: parsed by bash")


if __name__ == "__main__":
    main()
