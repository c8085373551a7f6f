package memory

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Query is a search.
type Query struct {
	Text    string   // words; an entry needs one of them
	Session string   // of the asker
	Team    string   // key of the asker's team
	Agent   string   // name of the asker
	Keys    []string // patterns of keys, in which * is any text; nil for all
	Limit   int      // default 10
}

// maxWords is how many words of a query count.
const maxWords = 32

// Search returns the entries that match best.
func (s *Store) Search(ctx context.Context, q Query) ([]Entry, error) {
	match := words(q.Text)
	if match == "" {
		return []Entry{}, nil
	}
	if q.Limit <= 0 {
		q.Limit = 10
	}
	rows, err := s.db.QueryContext(ctx, sqlFind, match)
	if err != nil {
		return nil, fmt.Errorf("search memory: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var hits []hit
	for rows.Next() {
		var info []byte
		e, err := scan(rows, &info)
		if err != nil {
			return nil, fmt.Errorf("search memory: %w", err)
		}
		if q.takes(e.Key) {
			hits = append(hits, hit{e, weight(info), q.near(e)})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("search memory: %w", err)
	}
	slices.SortFunc(hits, hit.compare)
	out := make([]Entry, 0, min(len(hits), q.Limit))
	for _, h := range hits[:min(len(hits), q.Limit)] {
		out = append(out, h.Entry)
	}
	return out, nil
}

// Recall returns what is remembered about a query as text of at most budget tokens, each
// taken for four bytes; "" for nothing.
func (s *Store) Recall(ctx context.Context, q Query, budget int) (string, error) {
	list, err := s.Search(ctx, q)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, e := range list {
		line := fmt.Sprintf("- %s: %s\n", e.Key, strings.Join(strings.Fields(e.Text), " "))
		if out.Len()+len(line) <= 4*budget {
			out.WriteString(line)
		}
	}
	return out.String(), nil
}

type hit struct {
	Entry
	weight float64
	near   int
}

// compare orders hits: the best first.
func (a hit) compare(b hit) int {
	switch {
	case a.weight > b.weight:
		return -1
	case a.weight < b.weight:
		return 1
	case a.near != b.near:
		return b.near - a.near
	case a.UpdatedAt != b.UpdatedAt:
		if a.UpdatedAt > b.UpdatedAt {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Key, b.Key)
}

// near is how close an entry is to the asker: its session, its agent, its team.
func (q Query) near(e Entry) int {
	parts := strings.SplitN(e.Key, "/", 3)
	switch {
	case q.Session != "" && e.Session == q.Session:
		return 3
	case parts[0] == q.Team && parts[1] == q.Agent:
		return 2
	case parts[0] == q.Team:
		return 1
	}
	return 0
}

func (q Query) takes(key string) bool {
	return q.Keys == nil || slices.ContainsFunc(q.Keys, func(p string) bool {
		first, rest, some := strings.Cut(p, "*")
		if !some {
			return key == p
		}
		return strings.HasPrefix(key, first) && len(key) >= len(first)+len(rest) && strings.HasSuffix(key, rest)
	})
}

// words makes a query for FTS4 of a text: its words, any of them, each of three letters or
// more also as the beginning of a longer one. Operators of the query language are words like others.
func words(text string) string {
	list := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slices.Sort(list)
	list = slices.Compact(list)
	for i, w := range list {
		if len(w) > 2 {
			w += "*"
		}
		list[i] = `"` + w + `"`
	}
	return strings.Join(list[:min(len(list), maxWords)], " OR ")
}

// weight is how well a row matches, from matchinfo's pcx: for every phrase of the query
// and every column, hits in the row, in all rows, and rows with hits. A rare word counts
// more than a frequent one, and a word in the key twice.
func weight(info []byte) float64 {
	n := make([]uint32, len(info)/4)
	for i := range n {
		n[i] = binary.NativeEndian.Uint32(info[4*i:])
	}
	if len(n) < 2 {
		return 0
	}
	phrases, columns := int(n[0]), int(n[1])
	sum := 0.0
	for p := range phrases {
		for c := range columns {
			at := 2 + 3*(p*columns+c)
			if at+2 >= len(n) || n[at] == 0 || n[at+2] == 0 {
				continue
			}
			one := 1 / float64(n[at+2])
			if c == 0 {
				one *= 2
			}
			sum += one
		}
	}
	return sum
}
