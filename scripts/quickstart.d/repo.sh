# shellcheck shell=bash disable=SC2034,SC2154,SC2317 # what scripts/quickstart reads, sets and calls
# Sourced by scripts/quickstart: a team looks through a clone of REPO. What there is to
# look at decides about the tasks: light checks, and with --full the tests.

about="a team looks through ${repo##*/}"
project=repo
own_task='git log --oneline -5'
longest_name=worker-2
max_test_tasks=12
max_vet_files=300 # to vet is to compile: more than these take minutes
left_out=()

started() { :; }

resolve() {
	case $repo in
	*://*) return ;;
	esac
	local said quoted
	quoted=$(printf %q "$repo")
	[ -e "$repo" ] || refuse 3 "$repo: no such directory" "scripts/quickstart --help"
	[ -d "$repo" ] || refuse 2 "$repo: not a directory" "scripts/quickstart $(printf %q "$(dirname "$repo")")"
	repo=$(cd "$repo" && pwd -P) || refuse 2 "$repo: cannot be entered" "ls -ld $quoted"
	have git || return 0 # the next check says so
	if ! said=$(git -C "$repo" rev-parse --git-dir 2>&1); then
		case $said in
		*dubious*) refuse 2 "$repo: belongs to another user" "git config --global --add safe.directory $quoted" ;;
		*) refuse 2 "$repo: not a git repository" "git -C $quoted init && git -C $quoted add . && git -C $quoted commit -m start" ;;
		esac
	fi
	[ "$(git -C "$repo" rev-parse --is-bare-repository)" = true ] || repo=$(git -C "$repo" rev-parse --show-toplevel)
	git -C "$repo" rev-parse -q --verify 'HEAD^{commit}' >/dev/null ||
		refuse 2 "$repo: the repository has no commit" "git -C $quoted add . && git -C $quoted commit -m start"
	about="a team looks through ${repo##*/}"
}

clone_it() {
	GIT_LFS_SKIP_SMUDGE=1 GIT_TERMINAL_PROMPT=0 git -c advice.detachedHead=false clone -q --no-hardlinks -- "$repo" "$clone"
}

make_clone() {
	step "cloning"
	clone=$work/repo
	bg clone_it 2>"$work/records/clone.log" || {
		cat "$work/records/clone.log" >&2
		refuse 1 "$repo cannot be cloned, see above" "git clone $(printf %q "$repo") /tmp/copy"
	}
	git -C "$clone" rev-parse -q --verify 'HEAD^{commit}' >/dev/null ||
		refuse 2 "$repo: the repository has no commit" "git -C $(printf %q "$repo") log"
	# Commits made in the clone need nothing of the person's: no name, no key, no hook.
	git -C "$clone" config commit.gpgsign false
	git -C "$clone" config core.hooksPath /dev/null
	git -C "$clone" config user.name >/dev/null || git -C "$clone" config user.name teamctl
	git -C "$clone" config user.email >/dev/null || git -C "$clone" config user.email teamctl@localhost
	# Nothing goes back into REPO unless the person fetches it.
	git -C "$clone" remote set-url --push origin refused-by-quickstart
	note "$repo at $(git -C "$clone" log -1 --format='%h %s' | cut -c1-50)"
	if [ -d "$repo" ] && [ "$(git -C "$repo" rev-parse --is-bare-repository)" = false ] &&
		[ -n "$(git -C "$repo" status --porcelain 2>/dev/null | head -n 1)" ]; then
		left_out+=("what is not committed in $repo")
	fi
	[ ! -e "$clone/.gitmodules" ] || left_out+=("submodules: they are not cloned")
	# Reports go where the repository has nothing and ignores nothing.
	local r
	for r in reports teamctl-reports teamctl-quickstart-reports; do
		reports=$r
		[ ! -e "$clone/$r" ] && ! git -C "$clone" check-ignore -q "$r/x.md" && break
	done
}

# --- the plan: JSON strings, for JSON is YAML and its quoting is simple --------------

json() {
	local s=$1 bs=$'\\' q='"'
	s=${s//"$bs"/"$bs$bs"}
	s=${s//"$q"/"$bs$q"}
	s=${s//$'\t'/"${bs}t"}
	s=${s//$'\n'/"${bs}n"}
	printf '"%s"' "$s"
}

ids=()

# task ID PRIORITY SUBJECT DEPENDENCIES CHECK [ARG...]: DEPENDENCIES are ids with spaces
# between them.
task() {
	local id=$1 priority=$2 subject=$3 deps=$4 check=$5 run d sep=''
	shift 5
	run=$(printf '%q ' bash "$here/quickstart.d/checks/$check" "$reports" "$@")
	{
		printf -- '- id: %s\n' "$(json "$id")"
		printf '  subject: %s\n' "$(json "$subject")"
		printf '  priority: %d\n' "$priority"
		printf '  run: %s\n' "$(json "${run% }")"
		printf '  verify: %s\n' "$(json "ls $(printf %q "$reports/$id").*")"
		printf '  dependsOn: ['
		for d in $deps; do
			printf '%s%s' "$sep" "$(json "$d")"
			sep=', '
		done
		printf ']\n'
	} >>"$work/tasks.yaml"
	ids+=("$id")
}

# manifests NAME: the directories with a tracked file of that name, the highest three,
# one a line; "." is the root.
manifests() {
	git -C "$clone" -c core.quotePath=false ls-files -- "$1" "**/$1" \
		':(exclude,glob)**/testdata/**' ':(exclude,glob)**/vendor/**' ':(exclude,glob)**/node_modules/**' |
		sed -e "s|/$1\$||" -e "s|^$1\$|.|" | awk '{ print ($0 == "." ? 0 : gsub("/", "/") + 1) "\t" $0 }' |
		sort -k1,1n -k2 | cut -f2- | awk '
			NR <= 3 { print }
			END     { if (NR > 3) print NR - 3 > "/dev/stderr" }' 2>"$work/records/more"
	if [ -s "$work/records/more" ]; then
		say "$(cat "$work/records/more") more directories with a $1" >>"$work/records/left-out"
	fi
}

# id_of KIND DIR: an id for a check of the directory.
id_of() {
	[ "$2" = . ] && printf '%s' "$1" || printf '%s-%s' "$1" "$(printf '%s' "$2" | LC_ALL=C tr -c 'A-Za-z0-9' -)"
}

# in_dir DIR: how a subject names it.
in_dir() { [ "$1" = . ] || printf ' in %s' "$1"; }

tracked() { [ -n "$(git -C "$clone" ls-files -- "$@" | head -n 1)" ]; }

# suite ID DIR COMMAND...: a test suite, with --full.
suite() {
	local id=$1 dir=$2
	shift 2
	if [ "$full" -eq 1 ]; then
		task "$id" 0 "run the tests$(in_dir "$dir")" "" run-tests "$id" "$dir" "$@"
	else
		left_out+=("$*$(in_dir "$dir"): with --full")
	fi
}

go_tasks() {
	local dir list group size id n
	tracked '*.go' || return 0
	task format 10 "check the format of the Go files" "" go-format
	while IFS= read -r dir; do
		id=$(id_of vet "$dir")
		n=$(git -C "$clone/$dir" ls-files -- '*.go' | wc -l | tr -d ' ')
		if [ "$full" -eq 1 ] || [ "$n" -le "$max_vet_files" ]; then
			task "$id" 9 "go vet$(in_dir "$dir")" "" go-vet "$id" "$dir"
		else
			left_out+=("go vet ./...$(in_dir "$dir"), which compiles $n files: with --full")
		fi
		if [ "$full" -eq 0 ]; then
			left_out+=("go test ./...$(in_dir "$dir"): with --full")
			continue
		fi
		list=$work/records/$(id_of packages "$dir")
		if ! (cd "$clone/$dir" && go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{"\t"}}{{.Dir}}{{"\t"}}{{len .TestGoFiles}}{{"\t"}}{{len .XTestGoFiles}}{{end}}' ./...) \
			>"$list.all" 2>"$list.err"; then
			left_out+=("go test ./...$(in_dir "$dir"): $(head -n 1 "$list.err")")
			continue
		fi
		awk -F '\t' -v c="$clone/$dir" '{ d = substr($2, length(c) + 2); print $1 "\t" (d == "" ? "root" : d) "\t" $3 + $4 }' \
			"$list.all" | test_groups "$max_test_tasks" >"$list"
		# The biggest first, so that none of them is what everybody waits for at the end.
		while IFS="$(printf '\t')" read -r group size; do
			id=$(id_of "$(id_of test "$dir")" "$group")
			awk -F '\t' -v g="$group" '$1 == g { print $2 }' "$list" >"$work/records/$id"
			task "$id" "$((size < 8 ? size : 8))" "test $group$(in_dir "$dir")" "" go-test "$id" "$dir" "$work/records/$id"
		done < <(cut -f1,3 "$list" | uniq)
	done < <(manifests go.mod)
}

# test_groups MAX: reads "package<TAB>directory<TAB>test files", writes
# "group<TAB>package<TAB>test files of the group": a group for each package if that
# makes no more than MAX, else by leading directories, as deep as MAX allows; the
# smallest groups over MAX are one, "rest".
test_groups() {
	awk -F '\t' -v max="$1" '
		function prefix(p, d,    parts, n, i, s) {
			n = split(p, parts, "/")
			s = parts[1]
			for (i = 2; i <= n && i <= d; i++) s = s "/" parts[i]
			return s
		}
		{ pkg[NR] = $1; dir[NR] = $2; files[NR] = $3 }
		END {
			for (d = 8; d >= 1; d--) {
				split("", size)
				groups = 0
				for (i = 1; i <= NR; i++) {
					g = prefix(dir[i], d)
					if (!(g in size)) groups++
					size[g] += files[i]
				}
				if (groups <= max) break
			}
			if (d < 1) d = 1
			if (groups > max) max-- # for rest
			while (groups > max) {
				least = ""
				for (g in size) if (least == "" || size[g] < size[least] || (size[g] == size[least] && g > least)) least = g
				in_rest[least] = 1
				rest += size[least]
				delete size[least]
				groups--
			}
			for (i = 1; i <= NR; i++) {
				g = prefix(dir[i], d)
				if (g in in_rest) print "rest\t" pkg[i] "\t" rest
				else print g "\t" pkg[i] "\t" size[g]
			}
		}' | sort -t "$(printf '\t')" -k3,3nr -k1,2
}

node_tasks() {
	local dir id
	tracked '*.js' '*.mjs' '*.cjs' package.json || return 0
	if ! have node; then
		left_out+=("JavaScript: node is not installed")
		return
	fi
	! tracked '*.js' '*.mjs' '*.cjs' || task node-syntax 5 "parse the JavaScript files" "" node-syntax
	while IFS= read -r dir; do
		id=$(id_of npm-test "$dir")
		grep -q '"test" *:' "$clone/$dir/package.json" || continue
		if ! have npm; then
			left_out+=("npm test$(in_dir "$dir"): npm is not installed")
		elif grep -q '[dD]ependencies" *: *{ *[^ }]*' "$clone/$dir/package.json" && [ ! -e "$clone/$dir/package-lock.json" ]; then
			left_out+=("npm test$(in_dir "$dir"): its packages are not installed, and it has no package-lock.json")
		else
			suite "$id" "$dir" bash -c '[ ! -e package-lock.json ] || npm ci; npm test'
		fi
	done < <(manifests package.json)
}

python_tasks() {
	local dir
	tracked '*.py' || return 0
	if ! have python3; then
		left_out+=("Python: python3 is not installed")
		return
	fi
	task python-syntax 5 "parse the Python files" "" python-syntax
	tracked 'test_*.py' '*_test.py' '**/test_*.py' '**/*_test.py' 'tests/*.py' || return 0
	if python3 -c 'import pytest' 2>/dev/null; then
		suite python-test . python3 -m pytest -q -p no:cacheprovider
	else
		suite python-test . python3 -m unittest discover
	fi
}

rust_tasks() {
	local dir id
	tracked '*.rs' || return 0
	if ! have cargo; then
		left_out+=("Rust: cargo is not installed")
		return
	fi
	while IFS= read -r dir; do
		if have rustfmt; then
			id=$(id_of rust-format "$dir")
			task "$id" 5 "check the format of the Rust files$(in_dir "$dir")" "" rust-format "$id" "$dir"
		else
			left_out+=("cargo fmt$(in_dir "$dir"): rustfmt is not installed")
		fi
		suite "$(id_of cargo-test "$dir")" "$dir" cargo test
	done < <(manifests Cargo.toml)
}

make_tasks() {
	local f target
	for f in GNUmakefile makefile Makefile; do
		[ -e "$clone/$f" ] || continue
		task make-targets 4 "list the targets of $f" "" make-targets make-targets "$f"
		for target in test check; do
			grep -q "^$target *:\([^=]\|\$\)" "$clone/$f" || continue
			if have make; then
				suite make-test . make "$target"
			else
				left_out+=("make $target: make is not installed")
			fi
			break
		done
		break
	done
}

plan() {
	step "planning"
	: >"$work/tasks.yaml"
	: >"$work/records/left-out"
	go_tasks
	node_tasks
	python_tasks
	rust_tasks
	make_tasks
	! tracked '*.sh' '*.bash' || task shell-syntax 5 "parse the shell scripts" "" shell-syntax
	task census 2 "count the files" "" census
	task largest 2 "find the largest files" "" largest
	task todo 2 "index what is marked for later" "" todo
	task summary 0 "write the summary" "${ids[*]}" summary "$(basename "$repo")" "${ids[@]}"
	{
		printf 'team: %s\n' "$team"
		printf 'repo: repo\n'
		printf 'members:\n'
		printf -- '- {name: worker, agent: worker, count: 3, layout: session}\n'
		printf 'tasks:\n'
		cat "$work/tasks.yaml"
	} >"$work/plan.yaml"
	rm "$work/tasks.yaml"
	note "${#ids[@]} tasks, 3 workers: $work/plan.yaml"
	local line
	while IFS= read -r line; do left_out+=("$line"); done <"$work/records/left-out"
	for line in ${left_out[@]+"${left_out[@]}"}; do note "left out: $line"; done
}

prepare() {
	make_clone
	plan
}

on_failed() { return 1; }
on_ready() { :; }
on_done() { :; }

results() {
	local b summary='' failed
	step "the result: branches of $work/repo"
	while IFS= read -r b; do
		note "$b  $(git -C "$clone" rev-list --count "HEAD..$b") new commits"
		! git -C "$clone" cat-file -e "$b:$reports/summary.md" 2>/dev/null || summary=$b
	done < <(git -C "$clone" for-each-ref --format='%(refname:short)' refs/heads/teamctl/)
	[ -n "$summary" ] || return 1
	note "git -C $(printf %q "$clone") show $summary:$reports/summary.md"
	failed=$(git -C "$clone" show "$summary:$reports/summary.md" | grep -c '| tests fail' || true)
	[ "$failed" -eq 0 ] || note "$failed test suites fail"
	[ "$failed" -eq 0 ]
}
