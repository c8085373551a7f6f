package tui

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/teamctl/teamctl/internal/private"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// ConfigName is the file in $TEAMCTL_HOME that configures the screens.
const ConfigName = "ui.yaml"

// maxConfig is its maximum size in bytes.
const maxConfig = 1 << 16

// Config is what a person has chosen for the screens.
type Config struct {
	Plain  bool
	ASCII  *bool // nil: where the locale is not UTF-8
	Mouse  bool
	Alerts bool
	// Pager is the program that changes are piped through, with its arguments; empty: none.
	Pager []string
	Keys  Keymap
}

func defaultConfig() Config { return Config{Mouse: true, Alerts: true, Keys: DefaultKeys()} }

// setting is a key of the file at its top level.
type setting struct {
	key, about string
	fallback   any // in words of JSON, nil for none
	read       func(*configReader, *Config, ast.Node)
}

// settings returns the settings that are on or off, in the order of the schema.
func settings() []setting {
	return []setting{
		{"plain", "open the plain screen: labelled lines that are written once, and words", false, func(r *configReader, c *Config, n ast.Node) { r.onOff("plain", n, &c.Plain) }},
		{"ascii", "draw with ASCII only; without it, where the locale is not UTF-8", nil, func(r *configReader, c *Config, n ast.Node) {
			on := false
			if r.onOff("ascii", n, &on) {
				c.ASCII = &on
			}
		}},
		{"mouse", "take clicks and the wheel; without, the terminal selects text as ever", true, func(r *configReader, c *Config, n ast.Node) { r.onOff("mouse", n, &c.Mouse) }},
		{"alerts", "notify through the terminal, while it has no focus, of what begins to need you, and when all is done", true, func(r *configReader, c *Config, n ast.Node) { r.onOff("alerts", n, &c.Alerts) }},
	}
}

// ReadConfig reads ui.yaml in a home directory. It never keeps a person from the screen: with an
// error it returns the defaults, and what could be read beside the keys. A missing file is not an error.
// The error is CodeInvalid (bad_config) with line and column for a mistake in the file, and
// CodeDenied (not_private) if others can write it.
func ReadConfig(home string) (Config, error) {
	data, err := private.ReadFile(filepath.Join(home, ConfigName)) // whoever can write it can swap "approve" and "reject"
	var refusal *private.Refusal
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return defaultConfig(), nil
	case errors.As(err, &refusal):
		return defaultConfig(), team.Errorf(team.CodeDenied, "read %s: %w", ConfigName, err).WithReason(team.ReasonNotPrivate).WithHint(team.ShellLine(refusal.Mend))
	case err != nil:
		return defaultConfig(), team.Errorf(team.CodeInvalid, "read %s: %w", ConfigName, err).WithReason(team.ReasonBadConfig)
	}
	return ParseConfig(data)
}

// ParseConfig reads the text of ui.yaml, see ReadConfig.
func ParseConfig(data []byte) (Config, error) {
	c := defaultConfig()
	r := &configReader{}
	root := r.parse(data)
	var keys ast.Node
	for _, p := range r.pairs(root, ConfigName) {
		list := settings()
		names := []string{"keys", pagerKey}
		for _, s := range list {
			names = append(names, s.key)
		}
		at := slices.IndexFunc(list, func(s setting) bool { return s.key == p.key })
		switch {
		case p.key == "keys":
			keys = p.value
		case p.key == pagerKey:
			c.Pager = r.program(pagerKey, p.value)
		case at >= 0:
			list[at].read(r, &c, p.value)
		default:
			r.unknown(p.at, "key", p.key, names)
		}
	}
	chosen := r.keys(keys)
	if len(r.problems) == 0 {
		c.Keys = chosen
		return c, nil
	}
	return c, team.Errorf(team.CodeInvalid, "%s", r.problem()).WithReason(team.ReasonBadConfig)
}

// configReader walks the file and collects its problems.
type configReader struct {
	problems []problem
}

type problem struct {
	line, column int // from 1; 0 for the file as a whole
	text         string
}

// problem returns the first problem as one line.
func (r *configReader) problem() string {
	slices.SortStableFunc(r.problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	p := r.problems[0]
	line := ConfigName + ": " + p.text
	if p.line > 0 {
		line = fmt.Sprintf("%s:%d:%d: %s", ConfigName, p.line, p.column, p.text)
	}
	if n := len(r.problems) - 1; n > 0 {
		line += fmt.Sprintf(", and %d more", n)
	}
	return line
}

func (r *configReader) bad(at *token.Position, format string, args ...any) {
	p := problem{text: view.Clean(fmt.Sprintf(format, args...))}
	if at != nil {
		p.line, p.column = at.Line, at.Column
	}
	r.problems = append(r.problems, p)
}

func (r *configReader) unknown(at *token.Position, what, word string, known []string) {
	if c := team.Closest(word, known); c != "" {
		r.bad(at, "unknown %s %q (did you mean %s?)", what, word, c)
		return
	}
	r.bad(at, "unknown %s %q (known here: %s)", what, word, strings.Join(known, ", "))
}

// parse returns the root of the document, nil for an empty file and after a problem.
func (r *configReader) parse(data []byte) ast.Node {
	if len(data) > maxConfig {
		r.bad(nil, "it is larger than %d bytes", maxConfig)
		return nil
	}
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) && syntax.GetToken() != nil {
			r.bad(syntax.GetToken().Position, "%s", syntax.GetMessage())
		} else {
			r.bad(nil, "%v", err)
		}
		return nil
	}
	var root ast.Node
	for _, d := range f.Docs {
		switch {
		case d.Body == nil, d.Body.Type() == ast.CommentType, d.Body.Type() == ast.NullType:
		case root != nil:
			r.bad(start(d.Body), "a second document")
			return nil
		default:
			root = d.Body
		}
	}
	return root
}

// start returns where a person sees a node begin.
func start(n ast.Node) *token.Position {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	if v, ok := n.(*ast.MappingValueNode); ok {
		n = v.Key
	}
	if n == nil || n.GetToken() == nil {
		return nil
	}
	return n.GetToken().Position
}

// entry is an entry of a mapping.
type entry struct {
	key   string
	at    *token.Position
	value ast.Node
}

// pairs returns the entries of a mapping, none for an absent one and after a problem.
func (r *configReader) pairs(n ast.Node, what string) (out []entry) {
	var list []*ast.MappingValueNode
	switch n := n.(type) {
	case nil, *ast.NullNode:
	case *ast.MappingNode:
		list = n.Values
	case *ast.MappingValueNode:
		list = []*ast.MappingValueNode{n}
	default:
		r.bad(start(n), "%s must be a mapping of names to values", what)
	}
	for _, v := range list {
		if v.Key == nil || v.Key.GetToken() == nil || v.Key.IsMergeKey() {
			r.bad(start(v), "%s has a key that is no word", what)
			continue
		}
		out = append(out, entry{v.Key.GetToken().Value, v.Key.GetToken().Position, v.Value})
	}
	return out
}

// onOff reads a truth value, which people write as on and off, too.
func (r *configReader) onOff(what string, n ast.Node, into *bool) bool {
	word, ok := scalar(n)
	on := slices.Contains([]string{"on", "true"}, word)
	if !ok || !on && !slices.Contains([]string{"off", "false"}, word) {
		r.bad(start(n), "%s is on or off", what)
		return false
	}
	*into = on
	return true
}

// pagerKey is the key of the program that changes are piped through.
const pagerKey = "pager"

// program reads the name of a program, or a list of it and its arguments.
func (r *configReader) program(what string, n ast.Node) (out []string) {
	nodes := []ast.Node{n}
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.SequenceNode:
		nodes = n.Values
	}
	for _, n := range nodes {
		word, ok := scalar(n)
		if !ok || word == "" && len(out) == 0 || strings.ContainsRune(word, 0) {
			r.bad(start(n), "%s is a program, or a list of it and its arguments", what)
			return nil
		}
		out = append(out, word)
	}
	if len(nodes) == 1 && nodes[0] == n && strings.ContainsAny(out[0], " \t") {
		r.bad(start(n), "%s is one program: arguments need a list, [%s]", what, strings.Join(strings.Fields(out[0]), ", "))
		return nil
	}
	return out
}

// scalar returns the text of a word, a number or a truth value.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// chosenKey is a key that the file gives.
type chosenKey struct {
	key string
	at  *token.Position
}

// keys reads the keys of commands and actions, and refuses those that would mean two things.
func (r *configReader) keys(n ast.Node) Keymap {
	all, k := bindings(), DefaultKeys()
	ids := make([]string, len(all))
	for i, b := range all {
		ids[i] = b.id
	}
	chosen := map[string][]chosenKey{}
	for _, p := range r.pairs(n, "keys") {
		at := slices.Index(ids, p.key)
		if at < 0 {
			r.unknown(p.at, "action", p.key, ids)
			continue
		}
		list := r.keyList(p.key, p.value)
		if b := all[at]; b.action != nil && b.action.Confirm && len(list) > 0 {
			r.bad(list[0].at, "%s cannot be taken back: it is in the menu only", p.key)
			continue
		}
		k[p.key], chosen[p.key] = nil, list
		for _, c := range list {
			k[p.key] = append(k[p.key], c.key)
		}
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if together(a, b) {
				r.clash(k, chosen[a.id], a.id, b.id)
				r.clash(k, slices.DeleteFunc(slices.Clone(chosen[b.id]), func(c chosenKey) bool { // once
					return slices.ContainsFunc(chosen[a.id], func(x chosenKey) bool { return x.key == c.key })
				}), b.id, a.id)
			}
		}
	}
	return k
}

// clash refuses the chosen keys of one id that another has, too.
func (r *configReader) clash(k Keymap, chosen []chosenKey, one, other string) {
	for _, c := range chosen {
		if slices.Contains(k[other], c.key) {
			r.bad(c.at, "key %s means both %s and %s", c.key, one, other)
		}
	}
}

// keyList reads a key or a list of keys; nothing and an empty list are no key.
func (r *configReader) keyList(id string, n ast.Node) (out []chosenKey) {
	nodes := []ast.Node{n}
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.SequenceNode:
		nodes = n.Values
	}
	for _, n := range nodes {
		key, ok := scalar(n)
		if !ok {
			r.bad(start(n), "the keys of %s must be a key or a list of keys: a character such as ? needs quotes", id)
			continue
		}
		if why := checkKey(key); why != "" {
			r.bad(start(n), "%s", why)
			continue
		}
		out = append(out, chosenKey{key, start(n)})
	}
	return out
}
