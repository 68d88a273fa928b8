#!/usr/bin/env python3
"""Holds aiperf's tables and files as tokload writes them against aiperf itself.

Makes a virtual environment of the package aiperf 0.13.0 under target/exports, lets `tokload` simulate and measure runs,
and then, with aiperf's own code:

* loads profile_export_aiperf.json and each line of profile_export.jsonl by aiperf's models;
* feeds the lines to aiperf's accumulator and compares every number that it computes with those of the file;
* draws the tables of the file's numbers by aiperf's console exporter and compares them to the letter.

Of a tokload with the feature `parquet` the file of --export parquet is read by pyarrow and pandas as well, and each value
held against the line of --save-detailed; `--parquet` does that alone, with pyarrow and pandas in a small environment.

usage: tools/exports.py [--parquet] [path of tokload, default target/debug/tokload]
"""

import asyncio
import io
import json
import math
import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "target" / "exports"
PACKAGE = "aiperf==0.13.0"

TOLERANCE = 1e-9
# The file has the ends of the window in whole microseconds.
TOLERANCE_OF_RATES = 1e-4
OF_THE_WINDOW = re.compile(r"^(effective|active)_|^tokens_in_flight$|throughput|^goodput$")


def runs(tokload):
    """The runs that are compared: a name, the command, and what to start beforehand."""
    model = "--slots 4 --base-ms 8"
    mock = "--ttft 20 --itl 5 --port 0"
    yield "closed", f"simulate {model} --max-concurrency 4 --num-prompts 60 --goodput ttft:40 tpot:12", None
    yield "open", f"simulate {model} --request-rate 6 --num-prompts 80 --num-warmups 4", None
    yield "one", f"simulate {model} --max-concurrency 1 --num-prompts 1 --random-output-len 1", None
    faults = "--fault http-503:0.1 --fault close:0.1 --fault empty:0.1 --seed 3"
    profile = "profile -m mock --endpoint-type chat --concurrency 4 --request-count 60 --osl 8 --isl 20"
    yield "failures", f"{profile} --streaming --ready-check-timeout-sec 20", f"{mock} {faults}"
    yield "whole", profile, mock
    cancelled = "--request-cancellation-rate 30 --request-cancellation-delay 0.03"
    yield "cancelled", f"{profile} --streaming {cancelled}", mock


def python(name, packages):
    """The interpreter of the environment with these packages, made where it is not there."""
    interpreter = PLACE / name / "bin" / "python"
    if not interpreter.exists():
        venv.create(PLACE / name, with_pip=True)
        subprocess.run([interpreter, "-m", "pip", "install", "-q", *packages], check=True, timeout=900)
    return interpreter


def write_parquet(tokload):
    """Lets tokload write the requests of a run as Parquet and as lines; None where it cannot."""
    folder = PLACE / "runs" / "parquet"
    subprocess.run(["rm", "-rf", folder], check=True)
    folder.mkdir(parents=True)
    line = "simulate --max-concurrency 2,5 --num-prompts 40 --num-warmups 3 --random-output-len 7 --save-detailed --save-chunks"
    words = [tokload, *line.split(), "--output-file", "run.json", "--export", "parquet=run.parquet", "-q"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    if "--features parquet" in done.stderr:
        return None
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
    return folder


def parquet(folder):
    """Read by pyarrow and pandas: what differs from the lines, one line each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    lines = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
    table = pq.read_table(folder / "run.parquet")
    if table.column_names != list(lines[0]):
        yield f"columns are {table.column_names}, keys {list(lines[0])}"
    kinds = {"ms": pa.float64(), "event_ms": pa.list_(pa.float64())}
    for field in table.schema:
        wanted = kinds.get(field.name) or (kinds["ms"] if field.name.endswith("_ms") else None)
        found = pa.list_(field.type.value_type) if pa.types.is_list(field.type) else field.type
        if wanted and found != wanted:
            yield f"{field.name} is {field.type}"
    rows = table.to_pylist()
    if len(rows) != len(lines):
        yield f"{len(rows)} rows of {len(lines)} lines"
    for number, (row, line) in enumerate(zip(rows, lines)):
        for key, value in line.items():
            value = " ".join(value) if key == "remarks" else value
            if row[key] != value:
                yield f"row {number}, {key}: {row[key]!r} where the line has {value!r}"
    frame = table.to_pandas()
    measured = frame[frame.phase == "measured"].groupby("level").ttft_ms.median()
    for level, median in measured.items():
        values = sorted(line["ttft_ms"] for line in lines if line["phase"] == "measured" and line["level"] == level)
        middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
        if abs(median - middle) > 1e-9 * middle:
            yield f"level {level}: pandas has a median of {median}, the lines of {middle}"


def check_parquet(tokload):
    """Whether the Parquet file of a run is that of its lines; says so."""
    folder = write_parquet(tokload)
    if folder is None:
        print("this tokload was built without the feature parquet: its files are not checked")
        return True
    interpreter = python("arrow", ["pyarrow", "pandas"])
    said = subprocess.run(
        [interpreter, __file__, "--inside-arrow", folder], capture_output=True, text=True, timeout=300
    )
    if said.returncode != 0:
        sys.exit(said.stderr)
    print(said.stdout.strip() or "parquet: pyarrow and pandas read the file, and have the same values as the lines")
    return not said.stdout.strip()


def make(tokload, name, command, server):
    """Lets tokload make a run; returns the folder and the tables that it printed."""
    folder = PLACE / "runs" / name
    subprocess.run(["rm", "-rf", folder], check=True)
    folder.mkdir(parents=True)
    started = None
    try:
        if server:
            started = subprocess.Popen(
                [tokload, "mock-server", *server.split()],
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            url = re.search(r"http://\S+?(?=[,\s])", started.stderr.readline()).group(0)
            command += f" --url {url}"
        words = [tokload, *command.split(), "-q", "--no-progress"]
        if not command.startswith("profile"):
            words += ["--metric-view", "aiperf", "--export", f"aiperf={folder}"]
        else:
            words += ["--artifact-dir", str(folder)]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            sys.exit(f"{name}: {' '.join(map(str, words))}: {done.stderr}")
        return folder, done.stdout
    finally:
        if started:
            started.terminate()
            started.wait(timeout=10)


def inside(folder, printed):
    """Runs in aiperf's environment: what differs, one line each."""
    from aiperf.common.models.export_models import JsonExportData
    from aiperf.common.models.record_models import MetricRecordInfo

    text = (folder / "profile_export_aiperf.json").read_text()
    if re.search(r"\b(NaN|Infinity|nan|inf)\b", text):
        yield "the file has a number that is none"
    loaded = JsonExportData.model_validate_json(text)
    lines = (folder / "profile_export.jsonl").read_text().splitlines()
    records = [MetricRecordInfo.model_validate_json(line) for line in lines]
    ours = json.loads(text)
    yield from numbers(ours, loaded, records)
    yield from tables(ours, printed)


def numbers(ours, loaded, records):
    from aiperf.common.accumulator_protocols import ExportContext
    from aiperf.common.enums import CreditPhase, MetricType
    from aiperf.common.messages import MetricRecordsData
    from aiperf.config import BenchmarkRun
    from aiperf.metrics.accumulator import MetricsAccumulator
    from aiperf.metrics.metric_registry import MetricRegistry

    config = loaded.input_config
    if config is None:
        yield "there is no input_config"
        return
    if "goodput" in ours:
        config.slos = {"time_to_first_token": 40.0, "inter_token_latency": 12.0}
    accumulator = MetricsAccumulator(run=BenchmarkRun(cfg=config, benchmark_id="x", artifact_dir=PLACE))

    def native(tag, measured):
        of = MetricRegistry.get_class(tag)
        shown = of.display_unit or of.unit
        # What is measured in whole nanoseconds stands in the file in milliseconds.
        whole = shown != of.unit and tag != "inter_token_latency"
        convert = lambda x: round(shown.convert_to(of.unit, x)) if whole else shown.convert_to(of.unit, x)
        convert = convert if shown != of.unit else (lambda x: x)
        value = measured.value
        return [convert(x) for x in value] if isinstance(value, list) else convert(value)

    # aiperf keeps points in time as floats, whose steps are 256 ns so long after 1970: it is told them since the run.
    zero = min(record.metadata.credit_issued_ns for record in records) - 1000
    times = ["credit_issued_ns", "request_start_ns", "request_ack_ns", "request_end_ns", "cancellation_time_ns"]

    async def fed():
        for record in records:
            for name in times:
                if getattr(record.metadata, name) is not None:
                    setattr(record.metadata, name, getattr(record.metadata, name) - zero)
            metrics = {tag: native(tag, measured) for tag, measured in record.metrics.items()}
            if record.error is None:
                metrics["request_count"] = 1
                metrics["min_request_timestamp"] = record.metadata.request_start_ns
                latency = round(record.metrics["request_latency"].value * 1e6)
                metrics["max_response_timestamp"] = record.metadata.request_start_ns + latency
            else:
                metrics["error_request_count"] = 1
            data = MetricRecordsData(metadata=record.metadata, metrics=metrics, error=record.error)
            await accumulator.process_record(data)
        nanos = lambda at: round(at.timestamp() * 1e6) * 1000 - zero
        phase = [record.metadata for record in records if str(record.metadata.benchmark_phase) == "profiling"]
        # The first is due when the window begins, of which the file has whole microseconds.
        begun = min(metadata.credit_issued_ns for metadata in phase)
        if not 0 <= begun - nanos(loaded.start_time) < 1000:
            raise ValueError(f"the window begins {begun - nanos(loaded.start_time)} ns before its first request")
        window = ExportContext(start_ns=begun, end_ns=nanos(loaded.end_time), phase=CreditPhase.PROFILING)
        return await accumulator.export_results(window)

    theirs = asyncio.run(fed()).results
    of_files = {tag: block for tag, block in ours.items() if isinstance(block, dict) and "unit" in block}
    for tag in sorted(set(theirs) - set(of_files)):
        yield f"{tag} is missing in the file"
    for tag in sorted(set(of_files) - set(theirs)):
        yield f"{tag} is not one that aiperf has of these requests"
    for tag in sorted(set(theirs) & set(of_files)):
        expected = theirs[tag].to_json_result().model_dump(exclude_none=True)
        found = of_files[tag]
        # aiperf's pipeline turns what is infinite into nothing on its way to the file.
        expected = {
            key: value for key, value in expected.items() if isinstance(value, str) or math.isfinite(value)
        }
        if set(expected) != set(found):
            yield f"{tag}: keys {sorted(found)} in the place of {sorted(expected)}"
            continue
        most = max(abs(value) for value in expected.values() if not isinstance(value, str)) or 1.0
        near = TOLERANCE_OF_RATES if OF_THE_WINDOW.search(tag) else TOLERANCE
        for key, value in expected.items():
            if isinstance(value, str):
                if value != found[key]:
                    yield f"{tag}: {key} is {found[key]}, not {value}"
            elif abs(value - found[key]) > near * most:
                yield f"{tag}: {key} is {found[key]!r}, not {value!r}"


def tables(ours, printed):
    """aiperf's console exporter over the numbers of the file."""
    from aiperf.analysis.sweepline import SWEEP_LINE_METRIC_SPECS
    from aiperf.common.enums import MetricConsoleGroup
    from aiperf.common.models import ErrorDetailsCount, MetricResult
    from aiperf.exporters.console_error_exporter import ConsoleErrorExporter
    from aiperf.exporters.console_metrics_exporter import ConsoleMetricsExporter
    from aiperf.metrics.metric_registry import MetricRegistry
    from rich.console import Console

    headers = {spec.tag: spec.header for spec in SWEEP_LINE_METRIC_SPECS}
    headers["effective_latency"] = "Effective Latency (CO-aware)"
    headers["credit_to_start_latency"] = "Credit-to-Start Latency"

    def header(tag):
        known = MetricRegistry.get_class_or_none(tag.removeprefix("adj_"))
        if tag.startswith("adj_"):
            return f"{known.header} (error-adjusted)"
        if tag.startswith("active_"):
            return tag.replace("_", " ").title()
        return known.header if known else headers[tag]

    def group(tag):
        if tag == "credit_to_start_latency":
            return MetricConsoleGroup.NONE
        if tag.startswith("active_"):
            return MetricConsoleGroup.ACTIVE
        return MetricConsoleGroup.EFFECTIVE if tag in headers else MetricConsoleGroup.DEFAULT

    order = ["adj_time_to_first_token", "adj_request_latency", "adj_decode_duration", "adj_inter_token_latency"]
    blocks = {tag: block for tag, block in ours.items() if isinstance(block, dict) and "unit" in block}
    place = lambda tag: list(headers).index(tag) if tag in headers else 99
    actives = ["decode_throughput", "prefill_throughput", "decode_throughput_per_user"]
    actives += ["prefill_throughput_per_user", "total_throughput"]
    active = lambda tag: actives.index(tag.removeprefix("active_")) if tag.startswith("active_") else 0
    adjusted = lambda tag: order.index(tag) if tag in order else -1
    tags = sorted(blocks, key=lambda tag: (adjusted(tag), active(tag), place(tag)))
    results = [
        MetricResult(tag=tag, header=header(tag), console_group=group(tag), **blocks[tag]) for tag in tags
    ]

    class Results:
        error_summary = [ErrorDetailsCount(**error) for error in ours["error_summary"]]

    class Config:
        results = Results()

    out = io.StringIO()
    console = Console(file=out, width=140, force_terminal=True, color_system=None, _environ={})
    exporter = ConsoleMetricsExporter(title="NVIDIA AIPerf | LLM Metrics")
    asyncio.run(ConsoleErrorExporter(Config()).export(console))
    exporter._print_renderable(console, exporter.get_renderable(results, console))
    expected = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    found = printed[: printed.rfind("┘") + 2]
    if expected != found:
        (PLACE / "expected.txt").write_text(expected)
        (PLACE / "found.txt").write_text(found)
        pairs = zip(expected.splitlines(), found.splitlines())
        first = next((pair for pair in pairs if pair[0] != pair[1]), ("one is longer", ""))
        yield f"tables differ, see {PLACE}/expected.txt:\n  {first[0]}\n  {first[1]}"


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--inside":
        for name in sys.argv[2:]:
            folder = PLACE / "runs" / name
            for difference in inside(folder, (folder / "printed.txt").read_text()):
                print(f"{name}: {difference}")
        return
    if sys.argv[1:2] == ["--inside-arrow"]:
        print("\n".join(parquet(Path(sys.argv[2]))))
        return
    words = [word for word in sys.argv[1:] if word != "--parquet"]
    tokload = Path(words[0] if words else ROOT / "target" / "debug" / "tokload").resolve()
    is_fine = check_parquet(tokload)
    if "--parquet" in sys.argv:
        sys.exit(0 if is_fine else 1)
    interpreter = python("venv", [PACKAGE])
    names = []
    for name, command, server in runs(tokload):
        folder, printed = make(tokload, name, command, server)
        (folder / "printed.txt").write_text(printed)
        names.append(name)
    environment = {**os.environ, "TRANSFORMERS_VERBOSITY": "error"}
    started = time.monotonic()
    said = subprocess.run(
        [interpreter, __file__, "--inside", *names],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    differences = [line for line in said.stdout.splitlines() if line]
    if said.returncode != 0:
        sys.exit(said.stderr)
    print("\n".join(differences) or f"{len(names)} runs: aiperf reads the files, and has the same numbers and tables")
    print(f"{time.monotonic() - started:.1f} s")
    sys.exit(1 if differences or not is_fine else 0)


if __name__ == "__main__":
    main()
