package teamfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/teamctl/teamctl/team"
)

const (
	maxFile  = 4 << 20 // bytes
	maxNodes = 200_000 // after following aliases: a short file can refer to itself a billion times
)

// reader walks one parsed file and collects its problems.
type reader struct {
	file     string
	anchors  map[string]ast.Node
	problems Problems
	nodes    int
}

func newReader(file string) *reader {
	return &reader{file: file, anchors: map[string]ast.Node{}}
}

// parse returns the root of the one document in data, nil after a problem.
func (r *reader) parse(data []byte) ast.Node {
	if len(data) > maxFile {
		r.whole("is larger than %d bytes", maxFile)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if json.Valid(data) {
		// YAML refuses tabs where JSON allows them; in valid JSON they appear only between tokens.
		data = bytes.ReplaceAll(data, []byte("\t"), []byte(" "))
	}
	f, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var syn yaml.Error
		if errors.As(err, &syn) && syn.GetToken() != nil {
			r.at(syn.GetToken().Position, "%s", syn.GetMessage())
		} else {
			r.whole("%v", err)
		}
		return nil
	}
	var roots []ast.Node
	for _, d := range f.Docs {
		if d.Body != nil {
			roots = append(roots, d.Body)
		}
	}
	switch len(roots) {
	case 0:
		r.whole("is empty")
		return nil
	case 1:
		r.collect(roots[0])
		return roots[0]
	}
	r.bad(roots[1], "holds more than one document")
	return nil
}

// collect records the anchors of the document.
func (r *reader) collect(root ast.Node) {
	ast.Walk(anchorVisitor{r}, root)
}

type anchorVisitor struct{ r *reader }

// Visit implements ast.Visitor.
func (v anchorVisitor) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		v.r.anchors[a.Name.GetToken().Value] = a.Value
	}
	return v
}

func (r *reader) whole(format string, args ...any) {
	r.problems = append(r.problems, Problem{File: r.file, Msg: fmt.Sprintf(format, args...)})
}

func (r *reader) at(p *token.Position, format string, args ...any) {
	if p == nil {
		r.whole(format, args...)
		return
	}
	r.problems = append(r.problems, Problem{File: r.file, Line: p.Line, Column: p.Column, Msg: fmt.Sprintf(format, args...)})
}

func (r *reader) bad(n ast.Node, format string, args ...any) {
	r.at(position(n), format, args...)
}

// position returns where a person sees the node begin; a block mapping's own token is its first
// colon.
func position(n ast.Node) *token.Position {
	switch n := n.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return position(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return position(n.Key)
	}
	if t := n.GetToken(); t != nil {
		return t.Position
	}
	return nil
}

// plain resolves anchors and aliases to the value; nil after a problem.
func (r *reader) plain(n ast.Node) ast.Node {
	for range 64 {
		r.nodes++
		if r.nodes > maxNodes {
			if r.nodes == maxNodes+1 {
				r.whole("is too large once its aliases are followed")
			}
			return nil
		}
		switch v := n.(type) {
		case *ast.AnchorNode:
			n = v.Value
		case *ast.AliasNode:
			to, ok := r.anchors[v.Value.GetToken().Value]
			if !ok {
				r.bad(n, "alias *%s has no anchor", v.Value.GetToken().Value)
				return nil
			}
			n = to
		case *ast.TagNode:
			r.bad(n, "tag %s is not supported", v.Start.Value)
			return nil
		default:
			return n
		}
	}
	r.bad(n, "aliases lead in a circle")
	return nil
}

// field is a permitted key of a mapping, and the function that reads its value.
type field struct {
	key  string
	read func(ast.Node)
}

// pairs returns the entries of a mapping; ok is false after a problem.
func (r *reader) pairs(n ast.Node, what string) (_ []*ast.MappingValueNode, ok bool) {
	n = r.plain(n)
	switch v := n.(type) {
	case nil:
		return nil, false
	case *ast.MappingNode:
		return v.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{v}, true
	}
	r.bad(n, "%s must be a mapping of keys to values, not %s", what, kind(n))
	return nil, false
}

// key returns the text of a mapping's key; ok is false after a problem.
func (r *reader) key(v *ast.MappingValueNode) (string, bool) {
	if _, merge := v.Key.(*ast.MergeKeyNode); merge {
		r.bad(v.Key, "merge keys (<<) are not supported")
		return "", false
	}
	if s, ok := v.Key.(*ast.StringNode); ok {
		return s.Value, true
	}
	t := v.Key.GetToken()
	if t == nil {
		r.bad(v, "this key is not a string")
		return "", false
	}
	switch v.Key.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return t.Value, true
	}
	r.bad(v.Key, "this key is not a string")
	return "", false
}

// mapping reads the known keys of a mapping and refuses all others.
func (r *reader) mapping(n ast.Node, what string, fields []field) bool {
	pairs, ok := r.pairs(n, what)
	if !ok {
		return false
	}
	seen := map[string]int{}
	for _, p := range pairs {
		key, ok := r.key(p)
		if !ok {
			continue
		}
		if line, twice := seen[key]; twice {
			r.bad(p.Key, "key %q is given twice (first in line %d)", key, line)
			continue
		}
		seen[key] = position(p.Key).Line
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
		if i < 0 {
			r.unknown(p.Key, key, fields)
			continue
		}
		fields[i].read(p.Value)
	}
	return true
}

func (r *reader) unknown(at ast.Node, key string, fields []field) {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.key
	}
	if c := team.Closest(key, names); c != "" {
		r.bad(at, "unknown key %q (did you mean %s?)", key, c)
		return
	}
	r.bad(at, "unknown key %q (known here: %s)", key, strings.Join(names, ", "))
}

// sequence calls each for every element.
func (r *reader) sequence(n ast.Node, what string, each func(ast.Node)) {
	n = r.plain(n)
	switch v := n.(type) {
	case nil:
	case *ast.SequenceNode:
		for _, e := range v.Values {
			each(e)
		}
	default:
		r.bad(n, "%s must be a list, not %s", what, kind(n))
	}
}

// text reads a string.
func (r *reader) text(what string, into *string) func(ast.Node) {
	return func(n ast.Node) {
		n = r.plain(n)
		switch v := n.(type) {
		case nil:
		case *ast.StringNode:
			*into = v.Value
		case *ast.LiteralNode:
			*into = v.Value.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			r.bad(n, "%s must be text, not %s: put it in quotes", what, kind(n))
		default:
			r.bad(n, "%s must be text, not %s", what, kind(n))
		}
	}
}

// scalar reads a string, or the text of a number or truth value.
func (r *reader) scalar(what string, into *string) func(ast.Node) {
	return func(n ast.Node) {
		n = r.plain(n)
		switch n.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			*into = n.GetToken().Value
		default:
			r.text(what, into)(n)
		}
	}
}

// integer reads a whole number.
func (r *reader) integer(what string, into *int) func(ast.Node) {
	return func(n ast.Node) {
		n = r.plain(n)
		switch v := n.(type) {
		case nil:
		case *ast.IntegerNode:
			i, err := strconv.Atoi(fmt.Sprint(v.Value))
			if err != nil || i > 1<<31 || i < -(1<<31) {
				r.bad(n, "%s %s is out of range", what, v.Token.Value)
				return
			}
			*into = i
		default:
			r.bad(n, "%s must be a whole number, not %s", what, kind(n))
		}
	}
}

// boolean reads true or false.
func (r *reader) boolean(what string, into *bool) func(ast.Node) {
	return func(n ast.Node) {
		n = r.plain(n)
		switch v := n.(type) {
		case nil:
		case *ast.BoolNode:
			*into = v.Value
		default:
			r.bad(n, "%s must be true or false, not %s", what, kind(n))
		}
	}
}

// value converts a node as encoding/json would.
func (r *reader) value(n ast.Node, depth int) any {
	n = r.plain(n)
	if depth > 50 {
		r.bad(n, "is nested too deeply")
		return nil
	}
	switch v := n.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.StringNode:
		return v.Value
	case *ast.LiteralNode:
		return v.Value.Value
	case *ast.IntegerNode:
		return v.Value
	case *ast.FloatNode:
		return v.Value
	case *ast.BoolNode:
		return v.Value
	case *ast.SequenceNode:
		list := make([]any, 0, len(v.Values))
		for _, e := range v.Values {
			list = append(list, r.value(e, depth+1))
		}
		return list
	case *ast.MappingNode, *ast.MappingValueNode:
		return r.object(n, "this value", depth+1)
	}
	r.bad(n, "%s has no place here", kind(n))
	return nil
}

func (r *reader) object(n ast.Node, what string, depth int) map[string]any {
	pairs, ok := r.pairs(n, what)
	if !ok {
		return nil
	}
	m := make(map[string]any, len(pairs))
	for _, p := range pairs {
		key, ok := r.key(p)
		if !ok {
			continue
		}
		if _, twice := m[key]; twice {
			r.bad(p.Key, "key %q is given twice", key)
			continue
		}
		m[key] = r.value(p.Value, depth)
	}
	return m
}

func kind(n ast.Node) string {
	switch v := n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode:
		return "the number " + v.Token.Value
	case *ast.FloatNode:
		return "the number " + v.Token.Value
	case *ast.BoolNode:
		return v.Token.Value
	case *ast.NullNode:
		return "nothing"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	}
	return strings.ToLower(n.Type().String())
}
