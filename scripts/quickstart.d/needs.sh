# shellcheck shell=bash disable=SC2154 # what scripts/quickstart sets
# Sourced by scripts/quickstart: what has to be there before anything is built. What is
# missing is installed where that needs no question, else it is one line with the
# command to type.

# to_install PACKAGE...: the command that installs them here.
to_install() {
	local sudo='sudo '
	[ "$(id -u)" -ne 0 ] || sudo=''
	if have apt-get; then
		say "${sudo}apt-get install $*"
	elif have dnf; then
		say "${sudo}dnf install ${*/libc6-dev/glibc-devel}"
	elif have apk; then
		say "${sudo}apk add ${*/libc6-dev/musl-dev}"
	elif have pacman; then
		say "${sudo}pacman -S ${*/libc6-dev/glibc}"
	elif have zypper; then
		say "${sudo}zypper install ${*/libc6-dev/glibc-devel}"
	elif have brew && [ "$*" != "gcc libc6-dev" ]; then
		say "brew install $*"
	elif have xcode-select; then
		say "xcode-select --install"
	else
		say "your package manager's install of: $*"
	fi
}

# c_compiler: a C compiler that finds its headers. Without the check each of SQLite's
# uses is an error of its own.
c_compiler() {
	local cc
	cc=$(cd "$root" && go env CC) || return 1
	# shellcheck disable=SC2086 # CC may have arguments
	have ${cc%% *} && printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | $cc -x c -fsyntax-only - 2>/dev/null
}

need_tools() {
	if ! have go && [ -x /usr/local/go/bin/go ]; then
		PATH=$PATH:/usr/local/go/bin
		say "go is not in your PATH: using /usr/local/go/bin"
	fi
	have go || refuse 7 "Go 1.26 or newer is not installed (https://go.dev/dl)" "export PATH=\$PATH:/usr/local/go/bin"
	[ -n "${HOME-}${GOCACHE-}" ] || export GOCACHE=/tmp/teamctl-go-cache GOPATH=/tmp/teamctl-go
	local said missing=()
	said=$(cd "$root" && GOWORK=off go list -m 2>&1) || refuse 7 "Go does not accept this repository: ${said##*$'\n'}" "go version"
	[ "${CGO_ENABLED-1}" != 0 ] || say "CGO_ENABLED=0 is set; SQLite is C, so teamctl is built with CGO_ENABLED=1"
	[ -z "${CC-}" ] || c_compiler || refuse 7 "the C compiler that CC names does not work: $CC" "unset CC"

	have git || missing+=(git)
	c_compiler || missing+=(gcc libc6-dev)
	have ps || missing+=(procps)
	have tmux || missing+=(tmux)
	[ ${#missing[@]} -eq 0 ] || install_pkgs "${missing[@]}" || true # what counts is what is there then
	hash -r
	have git || refuse 7 "git is not installed" "$(to_install git)"
	c_compiler || refuse 7 "no C compiler works here, and SQLite is C" "$(to_install gcc libc6-dev)"
	have ps || refuse 7 "ps is not installed" "$(to_install procps)"
	(: <>/dev/ptmx) 2>/dev/null || refuse 7 "no terminal can be opened for the members (/dev/ptmx)" "mount -t devpts devpts /dev/pts"
	have tmux || say "tmux is not installed, so the members get terminals without panes; for panes type: $(to_install tmux)"
}
