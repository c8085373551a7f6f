package fakecli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// Trust of Codex and Gemini CLI: commands of a repository run only if the user trusts it.

// placesOf returns a directory and, if it is a work tree, its repository.
func placesOf(ctx context.Context, dir string) []string {
	out, err := command(ctx, "git", "-C", dir, "rev-parse", "--path-format=absolute", "--git-common-dir").Output()
	if err != nil {
		return []string{dir}
	}
	return []string{dir, filepath.Dir(strings.TrimSpace(string(out)))}
}

var (
	codexProject = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)"([^"]+)"(?:\]\s*|=\{)trust_level\s*=\s*"([a-z]+)"`)
	})
	codexProjectServer = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^\[mcp_servers\.(\w+)\]\ncommand = "([^"]*)"\nargs = \[(.*)\]$`)
	})
)

// codexTrust returns the trust in directories according to the user's configuration and overrides.
func codexTrust(config []string) (map[string]string, error) {
	file, err := homeFile(".codex", "config.toml")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	levels := map[string]string{}
	for _, text := range append([]string{string(own)}, config...) {
		for _, m := range codexProject().FindAllStringSubmatch(text, -1) {
			levels[m[1]] = m[2]
		}
	}
	return levels, nil
}

// codexTrusted reports whether a directory is trusted, and whether that was said.
func codexTrusted(ctx context.Context, dir string, config []string) (trusted, known bool, err error) {
	levels, err := codexTrust(config)
	for _, p := range placesOf(ctx, dir) {
		trusted, known = trusted || levels[p] == "trusted", known || levels[p] != ""
	}
	return trusted, known, err
}

// codexProjectServers are the MCP servers that the configuration of a trusted directory
// names.
func codexProjectServers(ctx context.Context, dir string, config []string) (map[string]mcpServer, error) {
	trusted, _, err := codexTrusted(ctx, dir, config)
	if err != nil || !trusted {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, ".codex", "config.toml"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	servers := map[string]mcpServer{}
	for _, m := range codexProjectServer().FindAllStringSubmatch(string(text), -1) {
		s := mcpServer{Command: m[2]}
		for _, w := range codexWord().FindAllStringSubmatch(m[3], -1) {
			s.Args = append(s.Args, w[1])
		}
		servers[m[1]] = s
	}
	return servers, err
}

// codexAlone is the TUI without a server: it asks whether its directory is trusted, and
// keeps the answer.
func codexAlone(config []string, prompt string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	screen, err := newTerminal(look{bottom: codexBottom})
	if err != nil {
		return err
	}
	lines := make(chan string, 16)
	screen.line = func(text string) { lines <- text }
	gone := make(chan struct{})
	go func() {
		screen.read()
		close(gone)
	}()
	_, known, err := codexTrusted(ctx, dir, config)
	if err != nil {
		return err
	}
	if !known {
		places := placesOf(ctx, dir)
		key := screen.ask(ctx, []string{"  Folder access", "  " + dir, "", "  Trust this folder? Codex can read, edit, and run files here.", "", "› 1. Trust and continue", "  2. Back to Agent Command Center", "", "  enter continue · esc back"})
		if key != "1" {
			return errors.New("not trusted")
		}
		file, err := homeFile(".codex", "config.toml")
		if err != nil {
			return err
		}
		own, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		own = append(own, []byte("\n[projects.\""+places[len(places)-1]+"\"]\ntrust_level = \"trusted\"\n")...)
		if err := os.WriteFile(file, own, 0o600); err != nil {
			return err
		}
	}
	return codexTalks(ctx, screen, config, dir, prompt, lines, gone)
}

// geminiTrusted reports whether a directory, or one above it, is trusted; it knows nothing
// of work trees.
func geminiTrusted(dir string) (bool, error) {
	file, err := homeFile(".gemini", "trustedFolders.json")
	if err != nil {
		return false, err
	}
	var levels map[string]string
	if err := readJSON(file, &levels); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	for p := dir; ; p = filepath.Dir(p) {
		if levels[p] != "" {
			return levels[p] == "TRUST_FOLDER", nil
		}
		if p == filepath.Dir(p) {
			return false, nil
		}
	}
}

// geminiAsk asks whether a directory is trusted and keeps the answer.
func geminiAsk(ctx context.Context, t *terminal, dir string) error {
	key := t.ask(ctx, []string{"╭" + rule, "│ Do you trust the files in this folder?", "│", "│ ● 1. Trust folder", "│   2. Trust parent folder", "│   3. Don't trust", "╰" + rule})
	level := map[string]string{"1": "TRUST_FOLDER", "3": "DO_NOT_TRUST"}[key]
	if level == "" {
		return errors.New("not answered")
	}
	file, err := homeFile(".gemini", "trustedFolders.json")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil { // the file exists before it contains the answer
		return err
	}
	b, err := json.Marshal(map[string]string{dir: level})
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}
