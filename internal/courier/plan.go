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

// Prepare fills what a plan depends on and no pure function knows: the version of
// the CLI, a port, a secret, a socket, and the conversation that goes on. A program
// that is not installed is CodeNotFound, before anything is started.
func Prepare(ctx context.Context, l adapter.Launcher, in adapter.Input) (adapter.Input, error) {
	if !l.Foreign(in.Agent) {
		return in, nil
	}
	if argv, ok := l.Probe(in); ok {
		text, err := Version(ctx, in.Layout.Home, argv, probeEnv(in), versionWithin)
		if e := (*team.Error)(nil); errors.As(err, &e) && e.Code == team.CodeNotFound {
			return in, e.WithHint("install it, or say where it is: spawn --env " + adapter.ProgramVariable(in.Agent) + "=/path/to/" + filepath.Base(argv[0]))
		}
		in.Version = text // one that does not say it is unknown
		in.VersionLate = team.ReasonOf(err) == team.ReasonVersionLate && !assumedInVain(in.Layout.Bundle(in.Name), in.Agent)
	}
	c, err := ReadConversation(in.Layout.Bundle(in.Name), in.Session)
	if err == nil && c.Began && c.ID != "" && c.Agent == in.Agent && !refused(in.Layout.Bundle(in.Name), c) {
		in.Resume, in.Interrupted = c.ID, c.Working
	}
	in.Git = gitIdentity(ctx, in.Dir, in.Environ)
	in.Mint.Conversation = team.NewUUID()
	var secret [24]byte
	_, _ = rand.Read(secret[:]) // never fails: it ends the program instead
	in.Mint.Secret = base64.RawURLEncoding.EncodeToString(secret[:])
	if in.Mint.Port, err = FreePort(); err != nil {
		return in, err
	}
	if in.Env["TEAMCTL_CHANNEL"] != string(adapter.WayHooks) {
		in.Mint.Socket = AgentSocket(in.Layout, in.Generation)
	}
	return in, nil
}

// probeEnv is the environment in which a program is looked up and asked for its version.
func probeEnv(in adapter.Input) []string {
	if p, has := in.Env["PATH"]; has {
		return append(in.Environ[:len(in.Environ):len(in.Environ)], "PATH="+p)
	}
	return in.Environ
}

// identityWithin bounds the question who commits.
const identityWithin = 10 * time.Second

// gitIdentity is who commits in a directory, as variables: a program may keep the
// configuration of git from what it runs, as Gemini CLI does. Without a name or an
// address there are none, and git says what it lacks.
func gitIdentity(ctx context.Context, dir string, env []string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, identityWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "config", "-z", "--get-regexp", `^(user|author|committer)\.(name|email)$`)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.Output()
	if err != nil { // none is configured, or there is no git
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

// AgentSocket is a socket for a server of an agent's own; "" where its path would
// be too long.
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
