# shellcheck shell=bash
# Sourced by the checks here. REPORTS is the directory of reports in the worktree. A check
# fails only if it cannot be done: what it finds is in its report, and the last line of
# that is what the team is told.
# What a check runs (the tests of teamctl itself, for one) must not act on the team that
# runs it, so a check forgets the team and the tmux that it is in.
set -euo pipefail
for v in $(compgen -A export TEAMCTL_); do
	unset "$v"
done
unset v TMUX TMUX_PANE

reports=$1
shift
mkdir -p "$reports"

# keep FILE...: commits these even where the repository ignores such names.
keep() { git add -f -- "$@"; }

# bounded COMMAND...: the command with a limit of ten minutes, where there is one. Status
# 124 means that it was not done by then.
bounded() {
	if command -v timeout >/dev/null 2>&1; then
		timeout -k 30 600 "$@"
	else
		"$@"
	fi
}

# each MAX COMMAND...: runs it with each file of standard input (ended by NUL) as its last
# argument, and lists those for which it fails with the first line of what it says.
each() {
	local f said n=0 max=$1
	shift
	while IFS= read -r -d '' f; do
		[ -f "$f" ] || continue
		n=$((n + 1))
		[ "$n" -le "$max" ] || break
		said=$("$@" "$f" 2>&1 >/dev/null </dev/null) || printf '%s: %s\n' "$f" "$(printf '%s\n' "$said" | head -n 1)"
	done
}

# count PATTERN...: how many tracked files match.
count() { git ls-files -- "$@" | wc -l | tr -d ' '; }

# conclude ID COUNT LIST FINE FOUND: writes the report: the list, and a last line that says
# FINE if it is empty, else FOUND and how many lines it has.
conclude() {
	local n out=$reports/$1.txt
	n=$(printf '%s' "$2" | grep -c . || true)
	{
		[ "$n" -eq 0 ] || printf '%s\n' "$2"
		if [ "$n" -eq 0 ]; then say "$3"; else say "$4: $n"; fi
	} >"$out"
	tail -n 1 "$out"
	keep "$out"
}

say() { printf '%s\n' "$*"; }

# tests ID COMMAND...: runs tests; the report has the end of their output, and a last line
# that starts with "tests pass" or "tests fail".
tests() {
	local status=0 top out
	top=$(git rev-parse --show-toplevel)
	out=$top/$reports/$1.txt
	shift
	"$@" >"$out.all" 2>&1 </dev/null || status=$?
	tail -n 200 "$out.all" >"$out"
	rm "$out.all"
	if [ "$status" -eq 0 ]; then
		say "tests pass: $*" >>"$out"
	else
		say "tests fail (exit $status): $*" >>"$out"
	fi
	tail -n 1 "$out" | cut -c1-100
	cd "$top"
	keep "$out"
}
