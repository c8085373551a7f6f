# shellcheck shell=bash disable=SC2154 # what scripts/quickstart and the story set
# Sourced by scripts/quickstart: one line for each event of the team that matters, read
# from `teamctl events -f --json`. Nothing here is printed unless the team's log says it.

subject=() began_at='' done_tasks=0 lost_tasks=0 total_tasks=0
merges=0 # branches that a merge has dealt with
approval_of=() reviewed=() # by approval: its task; by task: who approved it

# run_teamctl ARG...: teamctl without the stream of events, which it would hand down to
# a supervisor that it starts.
run_teamctl() { "$tc" "$@" </dev/null 3<&-; }

# value KEY: sets $v to the first value of the key in $event, unquoted and cut at its
# first line break; empty if it has none.
value() {
	local string='"'$1'":"(([^"\\]|\\.)*)"' number='"'$1'":(-?[0-9]+)' q='"' slash=$'\\'
	v=''
	if [[ $event =~ $string ]]; then
		v=${BASH_REMATCH[1]}
		v=${v%%"${slash}n"*}
		v=${v//"${slash}u003c"/<}
		v=${v//"${slash}u003e"/>}
		v=${v//"${slash}u0026"/&}
		v=${v//"${slash}${q}"/$q}
		v=${v//"${slash}${slash}"/$slash}
	elif [[ $event =~ $number ]]; then
		v=${BASH_REMATCH[1]}
	fi
}

# tell WHO TEXT: a line with the time of the event, since the team was created.
tell() {
	local t=$((at - began_at)) who=$1
	[ "$who" != team-lead ] || who=lead
	printf '%5d.%d s  %-*s  %s\n' $((t / 1000)) $((t % 1000 / 100)) "$name_width" "$who" "$2"
}

# named ID: the task as a person knows it.
named() { printf '%s %s' "$1" "${subject[$1]-}"; }

# unfinished: how many tasks are in work or could be taken up.
unfinished() {
	run_teamctl task ls --json | awk '
		/^ *"status": /    { pending = /"pending"/; if (/"(claimed|in_progress)"/) n++ }
		/"blockedBy": \[\]/ { if (pending) n++; pending = 0 }
		END                { print n + 0 }'
}

# message ID: the text and the recipient of a message.
message() {
	local shown id=$1
	shown=$(run_teamctl message show "$id" --json) || return 0
	event=$(printf '%s\n' "$shown" | sed -n 's/^  "\(to\|text\|summary\)": /"\1":/p' | tr -d '\n')
	value to
	local to=$v
	if [ "$to" = team-lead ]; then
		value summary
		tell team-lead "is told: $v"
	else
		value text
		tell "$who" "to ${to:-all}: \"$v\""
	fi
}

# one_event: prints what $event says, if it matters, and calls the story's hooks:
# on_failed ID WHO WHY (true: it is tried again), on_ready ID, and on_done when every task
# is completed.
one_event() {
	local what who id
	value at
	at=$v
	value what
	what=$v
	value who
	who=$v
	value id
	id=$v
	began_at=${began_at:-$at}
	case $what in
	task.created)
		value subject
		subject[id]=$v
		total_tasks=$((total_tasks + 1))
		;;
	member.ready)
		value after
		[ "$v" != ready ] || tell "$id" "is ready"
		;;
	member.state)
		value after
		case $v in
		backoff) tell "$id" "has exited and is started again" ;;
		failed) tell "$id" "has failed: $tc logs $id" ;;
		esac
		;;
	task.claimed)
		value attempt
		if [ "$who" = team-lead ]; then
			: # it says what it does
		elif [ "${v:-1}" -gt 1 ]; then
			tell "$who" "starts $(named "$id"), attempt $v"
		else
			tell "$who" "starts $(named "$id")"
		fi
		;;
	task.review)
		value approval
		approval_of[v]=$id
		;;
	approval.approved)
		id=${approval_of[id]-}
		[ -z "$id" ] || reviewed[id]=$who
		;;
	approval.rejected)
		id=${approval_of[id]-}
		[ -z "$id" ] || tell "$who" "rejects $(named "$id")"
		;;
	task.completed)
		done_tasks=$((done_tasks + 1))
		value summary
		if [ -n "${reviewed[id]-}" ]; then
			tell "${reviewed[id]}" "approves $(named "$id")${v:+: $v}"
		else
			tell "$who" "completes $(named "$id")${v:+: $v}"
		fi
		;;
	task.unblocked) on_ready "$id" ;;
	task.failed)
		value error
		local why='FAIL: ([A-Za-z0-9_]+)'
		[[ $event =~ $why ]] && why=${BASH_REMATCH[1]} || why=''
		local shown=$v
		[ -z "$why" ] || [[ $v == *"$why"* ]] || shown="$v ($why)"
		tell "$who" "fails $(named "$id"): $shown"
		on_failed "$id" "$who" "$why" || lost_tasks=$((lost_tasks + 1))
		;;
	message.posted)
		value kind
		case $v in
		message | broadcast) message "$id" ;;
		info)
			value to
			[ "$v" != team-lead ] || message "$id"
			;;
		esac
		;;
	merge.queued) merging=1 ;;
	merge.gating)
		value target
		[ "$merging" -eq 0 ] || tell team-lead "merges into $v; the gate runs first"
		merging=0
		;;
	merge.landed | merge.conflict | merge.red | merge.failed | merge.contained)
		merges=$((merges + 1))
		value target
		[ "$what" = merge.contained ] || tell team-lead "branch $id: ${what#merge.} on $v"
		;;
	esac
}

# follow STREAM: reads the events of the team until every task is completed, or no
# further one can be. 0 if all are.
follow() {
	local event v at merging=0 name_width=${#longest_name} status awaited=''
	while :; do
		status=0
		IFS= read -r -t 60 -u 3 event || status=$?
		if [ "$status" -gt 128 ]; then
			note "nothing new for a minute; at work: $(at_work)"
			[ "$(unfinished)" -gt 0 ] || return 1
			continue
		fi
		[ "$status" -eq 0 ] || return 1 # the stream has ended
		one_event
		if [ "$total_tasks" -gt 0 ] && [ "$done_tasks" -eq "$total_tasks" ]; then
			if [ -z "$awaited" ]; then
				awaited=$merges
				on_done || return 1
			fi
			[ "$merges" -lt "$awaited" ] || return 0
		fi
		[ "$lost_tasks" -eq 0 ] || [ "$(unfinished)" -gt 0 ] || return 1
	done 3<"$1"
}

# at_work: who has a task in work, and which.
at_work() {
	local list
	list=$(run_teamctl task ls --json | awk -F '"' '
		$2 == "id"     { id = $4 }
		$2 == "status" { working = ($4 == "in_progress") }
		$2 == "ownerName" && working { printf "%s%s on %s", sep, $4, id; sep = ", " }')
	printf '%s' "${list:-nobody}"
}
