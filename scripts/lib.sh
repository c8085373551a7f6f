# shellcheck shell=bash
# Functions shared by the scripts here. Sourced, never run. Works with bash 3.2.

say() { printf '%s\n' "$*"; }

warn() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# die STATUS MESSAGE [HINT]: statuses are those of teamctl itself
# (2 usage, 3 not found, 4 conflict, 7 unavailable, 1 others).
die() {
	printf '%s: error: %s\n' "${0##*/}" "$2" >&2
	[ -z "${3-}" ] || printf '%s: hint: %s\n' "${0##*/}" "$3" >&2
	exit "$1"
}

have() { command -v "$1" >/dev/null 2>&1; }

# as_root COMMAND...: runs it as root, directly or with a sudo that needs no password.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

# install_pkgs PACKAGE...: installs Debian packages if that needs no input; fails
# otherwise. It fetches the package lists only if the install needs them.
install_pkgs() {
	have apt-get || return 1
	[ "$(id -u)" -eq 0 ] || { have sudo && sudo -n true 2>/dev/null; } || return 1
	say "installing $* (apt-get)"
	local log
	log=$(mktemp "${TMPDIR:-/tmp}/apt.XXXXXX") || return 1
	if apt_install "$@" >"$log" 2>&1 ||
		{ as_root apt-get -q update >>"$log" 2>&1 && apt_install "$@" >>"$log" 2>&1; }; then
		rm -f "$log"
		return 0
	fi
	tail -n 5 "$log" >&2
	rm -f "$log"
	return 1
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -q install -y --no-install-recommends "$@" </dev/null
}

# drop_caller_env: unsets variables inherited from a team or a git hook, so that
# nothing started here acts on the caller's team or repository.
drop_caller_env() {
	local v
	for v in $(compgen -A export TEAMCTL_) $(git rev-parse --local-env-vars 2>/dev/null); do
		case $v in
		TEAMCTL_RUNTIME_DIR | TEAMCTL_QUICKSTART_DIR) ;; # where, not whose
		*) unset "$v" ;;
		esac
	done
}

# keep_go_env: fixes the directories of the go command before the caller changes HOME,
# so that its caches keep their place.
keep_go_env() {
	export GOPATH GOCACHE GOMODCACHE GOENV
	GOPATH=$(go env GOPATH) GOCACHE=$(go env GOCACHE) GOMODCACHE=$(go env GOMODCACHE) GOENV=$(go env GOENV)
}

# memory_tmp TEMPLATE: creates a directory in memory with mktemp's template and prints
# it; fails if /dev/shm is not a memory file system with enough room. On ext4 the
# thousands of files that tests create and remove cost a fifth of the processor time,
# since the search for a free inode passes all recently removed ones.
memory_tmp() {
	[ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && [ -w /dev/shm ] || return 1
	[ "$(df -P -k /dev/shm | awk 'NR == 2 { print $4 }')" -ge 4000000 ] || return 1
	[ "$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)" -ge 8000000 ] || return 1
	case $(findmnt -n -o OPTIONS /dev/shm 2>/dev/null) in *noexec*) return 1 ;; esac
	mktemp -d "/dev/shm/$1"
}
