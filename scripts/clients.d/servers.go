package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/internal/agentlab"
)

const rowServers = "its person's MCP servers start, those of a repository once the person consents"

// ownServers checks that an agent starts the MCP servers of its person, those of the repository
// only after the person's consent, and neither with --mcp team.
func ownServers(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	s := serverRow{world: w, c: c, team: "servers-" + c.Name, repo: filepath.Join(w.Dir, "servers"), home: filepath.Join(w.Dir, "servers-home"), marks: filepath.Join(w.Dir, "servers-marks")}
	switch c.Name {
	case "claude", "gemini":
	default:
		return "-", s.refused(ctx)
	}
	if err := s.prepare(ctx); err != nil {
		return "", err
	}
	note, err := s.seen(ctx)
	if _, derr := w.teamctl(ctx, "delete", s.team, "--force"); err == nil {
		err = derr
	}
	return note, err
}

// serverRow has a repository, a person with servers in their configuration, and a directory in
// which each server leaves a mark when it starts.
type serverRow struct {
	*world
	c                       agentlab.Client
	team, repo, home, marks string
}

// server is the configuration of one server.
func (s *serverRow) server(name string) string {
	return fmt.Sprintf(`"%s":{"command":"sh","args":["-c","touch %s/%s-$TEAMCTL_AGENT_NAME; exec '%s' mcp"]}`, name, s.marks, name, s.exe)
}

// prepare writes the configurations.
func (s *serverRow) prepare(ctx context.Context) error {
	files := map[string]string{
		filepath.Join(s.repo, "README"): "a repository\n",
		filepath.Join(s.marks, "none"):  "",
	}
	mine := `"mcpServers":{` + s.server("mine") + `},`
	for name, text := range s.Files {
		text = strings.ReplaceAll(text, s.Repo, s.repo)
		switch {
		case s.c.Name == "claude" && name == ".claude.json", s.c.Name == "gemini" && name == ".gemini/settings.json":
			text = "{" + mine + text[1:]
		case name == ".claude/settings.json": // a person who skips the warning of bypassPermissions is not asked about servers either
			text = `{"permissions":{"allow":["Bash(sleep:*)"]}}`
		}
		files[filepath.Join(s.home, name)] = text
	}
	if s.c.Name == "claude" {
		files[filepath.Join(s.repo, ".mcp.json")] = `{"mcpServers":{` + s.server("proj") + `,` + s.server("other") + `}}`
	}
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, argv := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "begin"}} {
		if _, err := s.Run(ctx, append([]string{"git", "-C", s.repo}, argv...)...); err != nil {
			return err
		}
	}
	_, err := s.teamctl(ctx, "create", s.team, "--repo", s.repo)
	return err
}

// start spawns a member with the person's configuration and returns the first request to its model.
func (s *serverRow) start(ctx context.Context, name string, more ...string) (string, error) {
	prompt := s.token(name)
	_, err := s.teamctl(ctx, append([]string{"spawn", name, "--team", s.team, "--agent", s.c.Name, "--session", "--env", "HOME=" + s.home, "--prompt", "@@say " + prompt}, more...)...)
	return prompt, err
}

// started waits until the servers of a member have started.
func (s *serverRow) started(ctx context.Context, member string, names ...string) error {
	return s.until(ctx, "started", func() (bool, error) {
		for _, n := range names {
			if _, err := os.Stat(filepath.Join(s.marks, n+"-"+member)); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// none reports servers of a member that have started.
func (s *serverRow) none(member string, names ...string) error {
	for _, n := range names {
		if _, err := os.Stat(filepath.Join(s.marks, n+"-"+member)); err == nil {
			return fmt.Errorf("server %s of %s has started", n, member)
		}
	}
	return nil
}

func (s *serverRow) seen(ctx context.Context) (string, error) {
	first, err := s.start(ctx, "asked")
	if err != nil {
		return "", err
	}
	own := []string{"mine"}
	if s.c.Name == "claude" {
		own = append(own, "proj", "other")
		if err := s.consent(ctx, "asked", first); err != nil {
			return "", err
		}
	}
	if _, err := s.answered(ctx, first); err != nil {
		return "", err
	}
	if err := s.started(ctx, "asked", own...); err != nil {
		return "", err
	}
	if s.c.Name == "claude" && !s.c.Older { // the consent is for the repository, in whichever worktree
		again, err := s.start(ctx, "again")
		if err != nil {
			return "", err
		}
		if _, err := s.answered(ctx, again); err != nil {
			return "", err
		}
		if err := s.started(ctx, "again", own...); err != nil {
			return "", err
		}
	}
	alone, err := s.start(ctx, "alone", "--mcp", "team")
	if err != nil {
		return "", err
	}
	if s.c.Older { // it asks in each worktree, also about servers that it does not start
		if err := s.consent(ctx, "alone", alone); err != nil {
			return "", err
		}
	}
	r, err := s.answered(ctx, alone)
	if err == nil && strings.Contains(r.Body, "mcp__mine__") {
		err = errors.New("the model is offered the tools of a server that is not to start")
	}
	return "", errors.Join(err, s.none("alone", "mine", "proj", "other"))
}

// consent waits for the question and answers it as a person does.
func (s *serverRow) consent(ctx context.Context, name, first string) error {
	if s.c.AsksInWorktree { // accepting the directory there accepts its servers, too
		return s.trusts(ctx, s.team, name)
	}
	if err := s.waitsForTrust(ctx, s.team, name); err != nil {
		return err
	}
	if err := s.none(name, "proj", "other"); err != nil {
		return err
	}
	if s.model.Arrivals(first) > 0 {
		return errors.New("the model was asked before the person was")
	}
	if _, err := os.Stat(filepath.Join(s.repo, ".claude", "settings.local.json")); err == nil {
		return errors.New("the question was answered for the person")
	}
	return s.press(ctx, s.team, name, "Down", "Down", "Enter")
}

// refused checks that a program that cannot leave its servers out is not started as if it could.
func (s *serverRow) refused(ctx context.Context) error {
	_, err := s.start(ctx, "alone", "--mcp", "team", "--team", "demo")
	if err == nil || !strings.Contains(err.Error(), "cannot be started with the MCP servers of teamctl only") {
		return fmt.Errorf("it is started with --mcp team: %w", err)
	}
	return nil
}
