# shellcheck shell=bash disable=SC2034,SC2154,SC2317 # what scripts/quickstart reads, sets and calls
# Sourced by scripts/quickstart: the story without REPO. The team of
# examples/quickstart/plan.yaml works; this is its lead.

about="three agents and a reviewer repair a small program"
project=tally
own_task='go test ./...'
longest_name=lead
workers=(ann bob cid)

resolve() { :; }

# plan_for_models: the same plan for agents that have a model. Without a key it is a script,
# which tells the lead what a worker's command tells its colleague, and runs the command.
# What such an agent runs has to be allowed.
plan_for_models() {
	sed -e 's/agent: worker/agent: llm/' \
		-e 's/^    run: \(.*\) --tell [0-9]* "\(.*\)"'"'"'$/    run: \1'"'"'\
    metadata: {tell: "\2"}/' \
		"$root/examples/quickstart/plan.yaml" >"$work/plan.yaml"
	cat >>"$work/plan.yaml" <<-'EOF'
		permissions:
		  allow:
		    - {tool: shell, command: '"$TEAMCTL_REPO/../work/*'}
	EOF
}

# tests: how many tests of the project pass and fail, as "PASS FAIL".
tests() {
	(cd "$work/tally" && go test -v ./... 2>&1) |
		awk '/^--- PASS/ { p++ } /^--- FAIL/ { f++ } END { print p + 0, f + 0 }'
}

prepare() {
	# The project is plain Go: neither a C compiler nor a workspace around it matters.
	export CGO_ENABLED=0 GOWORK=off
	step "preparing the project: tally, which counts the words of a text"
	cp -R "$root/examples/quickstart/." "$work/"
	[ "$agent" = worker ] || plan_for_models
	local git=(git -C "$work/tally" -c init.defaultBranch=main)
	"${git[@]}" init -q
	"${git[@]}" symbolic-ref HEAD refs/heads/main
	# Commits made here need nothing of the person's: no name, no key, no hook.
	"${git[@]}" config user.name teamctl
	"${git[@]}" config user.email teamctl@localhost
	"${git[@]}" config commit.gpgsign false
	"${git[@]}" config core.autocrlf false
	"${git[@]}" config core.hooksPath /dev/null
	"${git[@]}" add -A
	"${git[@]}" commit -q -m start
	note "compiling it and its tests; the first time parts of Go's library too, once"
	# Vet is compiled with it: the gate of the merge runs it.
	warm() { cd "$work/tally" && go vet ./... && { go test ./... || true; }; }
	timed "compiling" "$work/records/tests.log" warm || refuse 1 "the sample cannot be compiled, see above" "go version"
	note "$(tests | awk '{ printf "%d of its %d tests fail", $2, $1 + $2 }'); the plan has $(grep -c '^  - id: ' "$work/plan.yaml") tasks: $work/plan.yaml"
}

# on_failed ID WHO TEST: the lead sends a task back once, and says what is missing.
on_failed() {
	[ -z "${sent_back-}" ] || return 1
	sent_back=$1
	tell team-lead "sends $(named "$1") back"
	run_teamctl send "$2" "task $1: ${3:-its verification} fails, rows are to be aligned too" >/dev/null 2>&1
	run_teamctl task retry "$1" >/dev/null 2>&1
}

# started: the lead keeps the merge, so that it is offered to nobody else, and gives the two
# changes of one file to two workers.
started() { bg assign >>"$work/records/up.log"; }

assign() { "$tc" task assign 6 ann && "$tc" task assign 7 bob && "$tc" task assign 9 team-lead; }

# on_ready ID: a task that nobody waits for any more. The merge is the lead's.
on_ready() {
	[ "${subject[$1]-}" = "merge all branches into main" ] || return 0
	merge || return 0 # the rest of the log says why
	run_teamctl task claim "$1" >/dev/null 2>&1
	run_teamctl task complete "$1" --commit "$(git -C "$work/tally" rev-parse main)" \
		--summary "the three branches are in main" >/dev/null 2>&1
}

# merge: all branches into main, through the lane.
merge() {
	run_teamctl merge "${workers[@]}" --into main --update-checkout \
		--gate 'go vet ./...' --gate 'go test ./...' >>"$work/records/merge.log" 2>&1
}

# on_done: what the last task has committed goes into main as well, by the same lane.
on_done() {
	awaited=$((merges + ${#workers[@]}))
	merge
}

results() {
	local passed failed
	step "the result: branch main of $work/tally"
	read -r passed failed < <(tests)
	note "$(git -C "$work/tally" rev-list --count main) commits; $passed tests pass, $failed fail"
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
