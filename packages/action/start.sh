#!/usr/bin/env bash
# Starts a test broker in the background, waits until it serves, and writes its addresses to GITHUB_OUTPUT.
# HOROLOG is the command, ARGUMENTS are those of `test-broker`. The broker stays until the job is over.
set -euo pipefail

out=$RUNNER_TEMP/horolog-broker.json
errors=$RUNNER_TEMP/horolog-broker.log
read -ra arguments <<<"${ARGUMENTS:-}"
read -ra horolog <<<"${HOROLOG:-horolog}"

nohup "${horolog[@]}" test-broker --json --detached "${arguments[@]}" >"$out" 2>"$errors" </dev/null &
broker=$!
for _ in $(seq 300); do
  grep -qs '}$' "$out" && break
  if ! kill -0 "$broker" 2>/dev/null; then
    cat "$errors" >&2
    echo "::error::horolog did not start; see its output above" >&2
    exit 1
  fi
  sleep 0.1
done

for name in bootstrap control registry; do
  sed -nE "s/.*\"$name\": ?\"([^\"]*)\".*/$name=\1/p" "$out" >>"$GITHUB_OUTPUT"
done
"${horolog[@]}" health --bootstrap "$(sed -nE 's/.*"bootstrap": ?"([^"]*)".*/\1/p' "$out")"
