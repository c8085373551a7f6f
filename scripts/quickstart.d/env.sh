# shellcheck shell=bash
# Sourced by the tasks here: REPORTS is the directory of reports in the worktree.
# What a task runs (the tests of teamctl itself, for one) must not act on the team
# that runs it, so a task forgets the team and the tmux that it is in.
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
