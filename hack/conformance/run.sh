#!/usr/bin/env bash
# Runs the conformance tests of Kubernetes that need no container runtime against a Shoot of a landscape of its own, and says how
# many there are, how many are left out and why, which failed, and how many passed.
# Usage: run.sh GARDENLITE KUBECTL E2E.TEST [FOCUS], with FOCUS a regular expression for the names of tests.
set -euo pipefail
gardenlite=$(realpath "$1")
kubectl=$(realpath "$2")
tests=$(realpath "$3")
focus=${4:-}
here=$(realpath "$(dirname "$0")")
left_out=$here/left-out.txt
log=$here/../../bin/conformance.log
module=$(cd "$here" && go list -m -f '{{.Dir}}' k8s.io/kubernetes)

dir=$(mktemp -d)
export HOME=$dir
"$gardenlite" up --detach --port 0 --data-dir "$dir/landscape"
trap '"$gardenlite" down --data-dir "$dir/landscape"; rm -rf "$dir"' EXIT
"$gardenlite" shoot create conformance --data-dir "$dir/landscape" --wait
"$gardenlite" kubeconfig shoot dev/conformance --expiration 6h --data-dir "$dir/landscape" >"$dir/kubeconfig"

# The names of all conformance tests. In the file they are YAML strings, some over two lines.
awk '/^  codename:/ { name = $0; sub(/^  codename: */, "", name); reading = 1; next }
  reading && /^    / { sub(/^ */, " "); name = name $0; next }
  reading { gsub(/^'\''|'\''$/, "", name); gsub(/'\'\''/, "'\''", name); print name; reading = 0 }' \
  "$module/test/conformance/testdata/conformance.yaml" | sort -u >"$dir/all"
echo "[Conformance] tests: $(wc -l <"$dir/all")"
reason=
while IFS= read -r line; do
  case $line in
  '#'*) reason=${line#\# } ;;
  *) grep -E -- "$line" "$dir/all" | sed "s/^/$reason	/" >>"$dir/left" || echo "no test has a name like $line" >&2 ;;
  esac
done <"$left_out"
echo "left out: $(sort -t '	' -u -k 2 "$dir/left" | wc -l)"
sort -t '	' -u -k 2 "$dir/left" | cut -f 1 | sort | uniq -c

# A Shoot has no node that is reached through the network, and no container whose log could be read when a test fails.
status=0
"$tests" --provider=skeleton --kubeconfig="$dir/kubeconfig" --kubectl-path="$kubectl" \
  --ginkgo.focus="($focus).*\[Conformance\]" --ginkgo.skip="$(grep -v '^#' "$left_out" | paste -s -d '|')" \
  --ginkgo.no-color --ginkgo.silence-skips --ginkgo.timeout="${TIMEOUT:-3h}" --ginkgo.v --dump-logs-on-failure=false \
  >"$log" 2>&1 || status=$?
grep -E '^(Ran|FAIL!|SUCCESS!)|^ *\[FAIL\]|^ *\[TIMEDOUT\]' "$log" | sort -u || tail -n 50 "$log"
exit "$status"
