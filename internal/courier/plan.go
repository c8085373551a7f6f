package courier

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// maxSocket is the longest path of a unix socket.
const maxSocket = 107

// Prepare fills in what a plan needs and no pure function can know: the version of the CLI, a
// port, a secret, a socket, and the conversation to resume. CodeNotFound if the program is not
// installed; nothing has been started then.
func Prepare(ctx context.Context, l adapter.Launcher, in adapter.Input) (adapter.Input, error) {
	if !l.Foreign(in.Agent) {
		return in, nil
	}
	if argv, ok := l.Probe(in); ok {
		text, err := Version(ctx, in.Layout.Home, argv, probeEnv(in), versionWithin)
		if e := (*team.Error)(nil); errors.As(err, &e) && e.Code == team.CodeNotFound {
			return in, e.WithHint("install it, or set its path: spawn --env " + adapter.ProgramVariable(in.Agent) + "=/path/to/" + filepath.Base(argv[0]))
		}
		in.Version = text // a program without a version is unknown
		in.VersionLate = team.ReasonOf(err) == team.ReasonVersionLate && !assumedInVain(in.Layout.Bundle(in.Name), in.Agent)
	}
	c, err := ReadConversation(in.Layout.Bundle(in.Name), in.Session)
	if err == nil && c.Began && c.ID != "" && c.Agent == in.Agent && !refused(in.Layout.Bundle(in.Name), c) {
		in.Resume, in.Interrupted = c.ID, c.Working
	}
	in.Git = gitIdentity(ctx, in.Dir, in.Environ)
	in.Mint.Conversation = team.NewUUID()
	var secret [24]byte
	_, _ = rand.Read(secret[:]) // never fails: it crashes the program instead
	in.Mint.Secret = base64.RawURLEncoding.EncodeToString(secret[:])
	if in.Mint.Port, err = FreePort(); err != nil {
		return in, err
	}
	if in.Env["TEAMCTL_CHANNEL"] != string(adapter.WayHooks) {
		in.Mint.Socket = AgentSocket(in.Layout, in.Generation)
	}
	return in, nil
}

// probeEnv returns the environment in which a program is looked up and asked for its version.
func probeEnv(in adapter.Input) []string {
	if p, has := in.Env["PATH"]; has {
		return append(in.Environ[:len(in.Environ):len(in.Environ)], "PATH="+p)
	}
	return in.Environ
}

// identityWithin bounds reading git's identity.
const identityWithin = 10 * time.Second

// gitIdentity returns git's author and committer for a directory, as variables: a program may hide
// the git configuration from the commands that it runs, as Gemini CLI does. Without a name or an
// address it returns none, and git reports what is missing.
func gitIdentity(ctx context.Context, dir string, env []string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, identityWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "config", "-z", "--get-regexp", `^(user|author|committer)\.(name|email)$`)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.Output()
	if err != nil { // not configured, or git is not installed
		return nil
	}
	is := map[string]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			is[key] = value // the last one counts
		}
	}
	git := map[string]string{}
	for _, role := range []string{"author", "committer"} {
		name, mail := cmp.Or(is[role+".name"], is["user.name"]), cmp.Or(is[role+".email"], is["user.email"])
		if name != "" && mail != "" {
			prefix := "GIT_" + strings.ToUpper(role)
			git[prefix+"_NAME"], git[prefix+"_EMAIL"] = name, mail
		}
	}
	return git
}

// AgentSocket returns the path for the socket of an agent's own server, "" if it would be too
// long.
func AgentSocket(l team.Layout, generation string) string {
	short := strings.ReplaceAll(generation, "-", "")
	if len(short) > 12 {
		short = short[:12]
	}
	p := filepath.Join(l.Runtime(), "a"+short)
	if len(p) > maxSocket || short == "" {
		return ""
	}
	return p
}
