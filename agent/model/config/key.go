package config

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

const (
	keyTime = 30 * time.Second // for keyCommand
	maxKey  = 64 << 10
)

// key reads the key of a provider; "" if it has none. A key that cannot be read is CodeUnavailable
// (no_key), a file that others can read CodeInvalid (bad_key_file).
func (c *Config) key(ctx context.Context, name string, p Provider) (k string, err error) {
	defer func() {
		if k != "" && c.found != nil {
			c.found(cmp.Or(p.KeyEnv, "key of "+name), k)
		}
	}()
	switch {
	case p.KeyEnv != "":
		if k := strings.TrimSpace(os.Getenv(p.KeyEnv)); k != "" {
			return k, nil
		}
		return "", noKey(name, "%s is not set", p.KeyEnv).WithHint("set " + p.KeyEnv + ", or name keyFile or keyCommand in " + Name)
	case p.KeyFile != "":
		return c.keyOfFile(name, p)
	case p.KeyCommand != "":
		return keyOfCommand(ctx, name, p)
	}
	return "", nil
}

func noKey(name, format string, args ...any) *team.Error {
	return team.Errorf(team.CodeUnavailable, "no key for provider "+name+": "+format, args...).WithReason(team.ReasonNoKey)
}

func (c *Config) keyOfFile(name string, p Provider) (string, error) {
	file, err := c.keyPath(p)
	if err != nil {
		return "", noKey(name, "%w", err)
	}
	f, err := os.Open(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", noKey(name, "%s does not exist", file)
		}
		return "", noKey(name, "%w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", noKey(name, "%w", err)
	case !info.Mode().IsRegular() || info.Size() > maxKey:
		return "", noKey(name, "%s is not a small file", file)
	case info.Mode().Perm()&0o077 != 0:
		return "", team.Errorf(team.CodeInvalid, "key file %s of provider %s can be read by others (mode %o)", file, name, info.Mode().Perm()).
			WithReason(team.ReasonBadKeyFile).WithHint("chmod 600 " + team.ShellQuote(file))
	}
	b := make([]byte, info.Size())
	if n, err := f.Read(b); err != nil || n == 0 {
		return "", noKey(name, "%s is empty", file)
	}
	return oneLine(name, file, string(b))
}

// keyPath returns the absolute path of a provider's key file.
func (c *Config) keyPath(p Provider) (string, error) {
	file := p.KeyFile
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		file = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(c.dir, file)
	}
	return file, nil
}

// KeyFiles returns the sorted paths of the files with keys.
func (c *Config) KeyFiles() []string {
	var out []string
	for _, p := range c.providers {
		if p.KeyFile == "" {
			continue
		}
		if file, err := c.keyPath(p); err == nil {
			out = append(out, file)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Secrets calls found with all secrets of the configuration that can be read now: keys in files,
// headers for authorization, and variables and headers of MCP servers whose names indicate a
// secret. From then on found is also called with each key that is read, including those of
// commands, which run only when a model is used. Keys in environment variables are left to the
// caller: see KeyVariables.
func (c *Config) Secrets(found func(name, value string)) {
	c.found = found
	for name, p := range c.providers {
		if p.KeyFile != "" {
			_, _ = c.key(context.Background(), name, p) // a request to its models reports the error
		}
		for h, v := range p.Headers {
			if IsSecretName(h) {
				found(h, v)
			}
		}
	}
	SecretsOf(c.MCP, found)
}

// SecretsOf calls found with the secrets in the configuration of MCP servers.
func SecretsOf(servers map[string]team.MCPServer, found func(name, value string)) {
	for _, s := range servers {
		for _, all := range []map[string]string{s.Env, s.Headers} {
			for k, v := range all {
				if IsSecretName(k) {
					found(k, v)
				}
			}
		}
	}
}

// IsSecretName reports whether the name of a variable or header indicates a secret.
func IsSecretName(name string) bool {
	name = strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	if name == "AUTHORIZATION" || name == "PROXY_AUTHORIZATION" || name == "COOKIE" {
		return true
	}
	return slices.ContainsFunc([]string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD"}, func(end string) bool {
		return name == end || strings.HasSuffix(name, "_"+end)
	})
}

// keyOfCommand runs the command and ends only that process: password managers leave an agent
// running on purpose.
func keyOfCommand(ctx context.Context, name string, p Provider) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, keyTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", p.KeyCommand)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", noKey(name, "keyCommand: %w", err)
	}
	return oneLine(name, "keyCommand", string(out))
}

// oneLine returns the key in a text: its first line. Errors do not show the text.
func oneLine(name, from, text string) (string, error) {
	k, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	k = strings.TrimSpace(k)
	if k == "" || strings.ContainsFunc(k, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", noKey(name, "%s has no key in its first line", from)
	}
	return k, nil
}

// authorize returns a function that sets the protocol's header for the key.
func (c *Config) authorize(name string, p Provider) func(context.Context, http.Header) error {
	return func(ctx context.Context, h http.Header) error {
		k, err := c.key(ctx, name, p)
		if err != nil || k == "" {
			return err
		}
		if p.API == apiMessages {
			h.Set("X-Api-Key", k)
		} else {
			h.Set("Authorization", "Bearer "+k)
		}
		return nil
	}
}
