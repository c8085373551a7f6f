package specfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// Name is the name of a spec's file in its directory.
const Name = "agent.toml"

// Dir returns the directory of the user's own specs in the home directory of teamctl.
func Dir(home team.Home) string { return filepath.Join(home.Dir, "workspace", "agents") }

// Encode encodes a spec as TOML.
func Encode(s team.AgentSpec) ([]byte, error) {
	// Through JSON, whose fields distinguish an empty list from a missing one.
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode agent %s: %w", s.ID, err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		return nil, fmt.Errorf("encode agent %s: %w", s.ID, err)
	}
	var out bytes.Buffer
	e := toml.NewEncoder(&out)
	e.Indent = ""
	if err := e.Encode(fields); err != nil {
		return nil, fmt.Errorf("encode agent %s: %w", s.ID, err)
	}
	return out.Bytes(), nil
}

// Decode decodes a spec; file is its name in errors. They are CodeInvalid, with line and column if
// the text is malformed or has an unknown key.
func Decode(file string, b []byte) (team.AgentSpec, error) {
	var s team.AgentSpec
	meta, err := toml.Decode(string(b), &s)
	var at toml.ParseError
	switch {
	case errors.As(err, &at):
		return s, bad("%s:%d:%d: %s", file, at.Position.Line, at.Position.Col, at.Message)
	case err != nil:
		return s, bad("%s: %s", file, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		line, column := find(string(b), unknown[0])
		return s, bad("%s:%d:%d: unknown key %s", file, line, column, unknown[0])
	}
	if err := s.Validate(); err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func bad(format string, args ...any) error {
	return team.Errorf(team.CodeInvalid, format, args...).WithReason(team.ReasonBadSpec)
}

// find returns the position of an unknown key, which the library does not report. It is the line
// with the key for which the text up to there, or up to the end of the value that begins there,
// contains the key.
func find(text string, key toml.Key) (line, column int) {
	word := regexp.MustCompile(`(?:^|[^\w-])(` + regexp.QuoteMeta(key[len(key)-1]) + `)(?:[^\w-]|$)`)
	lines := strings.SplitAfter(text, "\n")
	has := func(n int) (has, ok bool) {
		var s team.AgentSpec
		meta, err := toml.Decode(strings.Join(lines[:n], ""), &s)
		return slices.ContainsFunc(meta.Undecoded(), func(k toml.Key) bool { return k.String() == key.String() }), err == nil
	}
	for i, l := range lines {
		at := word.FindStringSubmatchIndex(l)
		if at == nil {
			continue
		}
		if _, ok := has(i); !ok {
			continue // within a value of several lines
		}
		for n := i + 1; n <= len(lines); n++ {
			if has, ok := has(n); has {
				return i + 1, at[2] + 1
			} else if ok {
				break
			}
		}
	}
	return 1, 1
}

// Read reads the spec of a file.
func Read(file string) (team.AgentSpec, error) {
	b, err := regular.ReadFile(file)
	if err != nil {
		return team.AgentSpec{}, fmt.Errorf("read an agent spec: %w", err)
	}
	return Decode(file, b)
}

// Write writes a spec below a directory, as ID/agent.toml, and returns the file.
func Write(dir string, s team.AgentSpec) (string, error) {
	if err := s.Validate(); err != nil {
		return "", err
	}
	b, err := Encode(s)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, s.ID, Name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("write agent %s: %w", s.ID, err)
	}
	return file, atomicfile.Write(file, b, 0o600, true)
}

// ReadAll reads the specs below a directory, sorted by id. troubles has the error of each unusable
// file; the other specs are returned.
func ReadAll(dir string) (specs []team.AgentSpec, troubles []error) {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []error{err}
	}
	for _, e := range list {
		file := filepath.Join(dir, e.Name(), Name)
		s, err := Read(file)
		switch {
		case errors.Is(err, fs.ErrNotExist), !e.IsDir():
			continue // it may contain prompt texts without a spec
		case err == nil && s.ID != e.Name():
			err = bad("%s: its agent_id is %s, want %s as its directory", file, s.ID, e.Name())
		}
		if err != nil {
			troubles = append(troubles, err)
			continue
		}
		specs = append(specs, s)
	}
	return specs, troubles
}
