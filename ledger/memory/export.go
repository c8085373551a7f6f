package memory

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Formats of an export.
const (
	FormatMarkdown = "md"
	FormatJSONL    = "jsonl" // an entry in each line; the one that Import reads
)

// Export writes the entries whose keys begin with prefix, by key: the same entries make
// the same bytes. Errors: CodeInvalid for an unknown format.
func (s *Store) Export(ctx context.Context, w io.Writer, format, prefix string) error {
	list, err := s.List(ctx, prefix)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	switch format {
	case FormatJSONL:
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		for _, e := range list {
			if err := enc.Encode(e); err != nil {
				return err
			}
		}
	case FormatMarkdown:
		for i, e := range list {
			if i > 0 {
				_, _ = out.WriteString("\n") // Flush tells
			}
			_, _ = fmt.Fprintf(out, "## %s\n\n", e.Key)
			if len(e.Tags) > 0 {
				_, _ = fmt.Fprintf(out, "Tags: %s\n\n", strings.Join(e.Tags, ", "))
			}
			_, _ = fmt.Fprintf(out, "%s\n\nUpdated %s\n", strings.TrimSpace(e.Text), time.UnixMilli(e.UpdatedAt).UTC().Format(time.RFC3339))
		}
	default:
		return team.Errorf(team.CodeInvalid, "unknown format %q", format).WithHint("use md or jsonl")
	}
	return out.Flush()
}

// Import reads what Export has written as jsonl, all of it or nothing, and returns how
// many entries are new or newer. The same import again changes nothing. Errors:
// CodeInvalid with the number of the line.
func (s *Store) Import(ctx context.Context, r io.Reader) (changed int, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("import memory: %w", err)
	}
	defer func() {
		if err != nil {
			changed, err = 0, errors.Join(err, tx.Rollback())
		}
	}()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4*MaxText)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var e Entry
		d := json.NewDecoder(strings.NewReader(lines.Text()))
		d.DisallowUnknownFields()
		err := d.Decode(&e)
		if err == nil {
			err = e.check()
		}
		if err != nil {
			return 0, team.Errorf(team.CodeInvalid, "line %d: %w", n, err)
		}
		if e.UpdatedAt == 0 {
			e.UpdatedAt = s.now().UnixMilli()
		}
		if e.CreatedAt == 0 {
			e.CreatedAt = e.UpdatedAt
		}
		res, err := tx.ExecContext(ctx, sqlImport, e.Key, e.Text, tagList(e.Tags), e.Session, e.CreatedAt, e.UpdatedAt)
		if err != nil {
			return 0, fmt.Errorf("import memory %s: %w", e.Key, err)
		}
		one, err := res.RowsAffected()
		if err != nil {
			return 0, err
		}
		changed += int(one)
	}
	if err := lines.Err(); err != nil {
		return 0, team.Errorf(team.CodeInvalid, "import memory: %w", err)
	}
	return changed, tx.Commit()
}
