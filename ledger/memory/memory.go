package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	_ "github.com/mattn/go-sqlite3" // the driver

	"github.com/teamctl/teamctl/team"
)

// Limits of an entry.
const (
	MaxText = 32 << 10
	maxKey  = 200
	maxTags = 32
)

// Entry is one thing that is remembered.
type Entry struct {
	Key       string   `json:"key"` // TEAM/AGENT/NAME
	Text      string   `json:"text"`
	Tags      []string `json:"tags,omitempty"`
	Session   string   `json:"session,omitempty"` // that wrote it last; "" for a person
	CreatedAt int64    `json:"createdAt"`         // Unix milliseconds
	UpdatedAt int64    `json:"updatedAt"`
}

// Store is an open memory. It may be used by several goroutines.
type Store struct {
	db  *sql.DB
	now func() time.Time
}

const schema = `
CREATE TABLE IF NOT EXISTS entries (
  id         INTEGER PRIMARY KEY,
  key        TEXT NOT NULL UNIQUE,
  text       TEXT NOT NULL,
  tags       TEXT NOT NULL CHECK (json_type(tags) = 'array'),
  session    TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE VIRTUAL TABLE IF NOT EXISTS entries_fts USING fts4(content="entries", key, text, tags, tokenize=unicode61);
CREATE TRIGGER IF NOT EXISTS entries_before_update BEFORE UPDATE ON entries BEGIN DELETE FROM entries_fts WHERE docid = OLD.id; END;
CREATE TRIGGER IF NOT EXISTS entries_before_delete BEFORE DELETE ON entries BEGIN DELETE FROM entries_fts WHERE docid = OLD.id; END;
CREATE TRIGGER IF NOT EXISTS entries_after_update AFTER UPDATE ON entries
  BEGIN INSERT INTO entries_fts(docid, key, text, tags) VALUES (NEW.id, NEW.key, NEW.text, NEW.tags); END;
CREATE TRIGGER IF NOT EXISTS entries_after_insert AFTER INSERT ON entries
  BEGIN INSERT INTO entries_fts(docid, key, text, tags) VALUES (NEW.id, NEW.key, NEW.text, NEW.tags); END;
PRAGMA user_version = 1;`

const (
	cols   = `key, text, tags, session, created_at, updated_at`
	sqlPut = `INSERT INTO entries(key, text, tags, session, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
		ON CONFLICT (key) DO UPDATE SET text = excluded.text, tags = excluded.tags, session = excluded.session, updated_at = excluded.updated_at
		WHERE text <> excluded.text OR tags <> excluded.tags`
	sqlGet  = `SELECT ` + cols + ` FROM entries WHERE key = ?`
	sqlDrop = `DELETE FROM entries WHERE key = ?`
	sqlList = `SELECT ` + cols + ` FROM entries WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key`
	sqlFind = `SELECT e.key, e.text, e.tags, e.session, e.created_at, e.updated_at, matchinfo(entries_fts, 'pcx')
		FROM entries_fts JOIN entries e ON e.id = entries_fts.docid WHERE entries_fts MATCH ?`
	// An older entry of an import never takes the place of a newer one.
	sqlImport = `INSERT INTO entries(key, text, tags, session, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
		ON CONFLICT (key) DO UPDATE SET text = excluded.text, tags = excluded.tags, session = excluded.session,
		created_at = excluded.created_at, updated_at = excluded.updated_at
		WHERE excluded.updated_at > entries.updated_at AND (entries.text <> excluded.text OR entries.tags <> excluded.tags)`
)

// Open opens the memory at path and makes it if there is none.
func Open(ctx context.Context, path string) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open memory: %w", err)
	}
	q := url.Values{"_busy_timeout": {"30000"}, "_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open memory %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	s := &Store{db: db, now: time.Now}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open memory %s: %w", path, err), db.Close())
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("open memory: %w", err), db.Close())
	}
	return s, nil
}

func (s *Store) prepare(ctx context.Context) error {
	var version int
	if err := s.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil || version == 1 {
		return err
	}
	if version > 1 {
		return team.Errorf(team.CodeUnavailable, "it has version %d, this teamctl knows 1", version).WithHint("use the newer teamctl")
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Close closes the store.
func (s *Store) Close() error { return s.db.Close() }

// Save writes an entry in the name of its session; one with the same key is replaced.
// Errors: CodeInvalid bad_key, bad_text.
func (s *Store) Save(ctx context.Context, e Entry) (Entry, error) {
	if err := e.check(); err != nil {
		return Entry{}, err
	}
	now := s.now().UnixMilli()
	if _, err := s.db.ExecContext(ctx, sqlPut, e.Key, e.Text, tagList(e.Tags), e.Session, now, now); err != nil {
		return Entry{}, fmt.Errorf("save memory %s: %w", e.Key, err)
	}
	return s.Get(ctx, e.Key)
}

// Get returns one entry; CodeNotFound (memory_not_found) without it.
func (s *Store) Get(ctx context.Context, key string) (Entry, error) {
	e, err := scan(s.db.QueryRowContext(ctx, sqlGet, key))
	if errors.Is(err, sql.ErrNoRows) {
		return e, notFound(key)
	}
	return e, err
}

// Forget removes an entry; CodeNotFound (memory_not_found) without it.
func (s *Store) Forget(ctx context.Context, key string) error {
	res, err := s.db.ExecContext(ctx, sqlDrop, key)
	if err != nil {
		return fmt.Errorf("forget %s: %w", key, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, notFound(key))
	}
	return nil
}

// List returns the entries whose keys begin with prefix, by key.
func (s *Store) List(ctx context.Context, prefix string) ([]Entry, error) {
	rows, err := s.db.QueryContext(ctx, sqlList, prefix)
	if err != nil {
		return nil, fmt.Errorf("list memory: %w", err)
	}
	defer func() { _ = rows.Close() }()
	out := []Entry{}
	for rows.Next() {
		e, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("list memory: %w", err)
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

func notFound(key string) error {
	return team.Errorf(team.CodeNotFound, "no memory %q", key).WithReason(team.ReasonMemoryNotFound).WithHint("teamctl memory ls")
}

// check refuses what cannot be an entry.
func (e Entry) check() error {
	parts := strings.SplitN(e.Key, "/", 3)
	bad := func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }
	switch {
	case len(parts) != 3 || slices.Contains(parts, "") || len(e.Key) > maxKey || strings.ContainsFunc(e.Key, bad):
		return team.Errorf(team.CodeInvalid, "invalid memory key %q", e.Key).WithReason(team.ReasonBadKey).WithHint("a key has the form TEAM/AGENT/NAME")
	case strings.TrimSpace(e.Text) == "":
		return team.Errorf(team.CodeInvalid, "memory %s has no text", e.Key).WithReason(team.ReasonBadText)
	case len(e.Text) > MaxText:
		return team.Errorf(team.CodeInvalid, "memory %s has %d bytes, at most %d", e.Key, len(e.Text), MaxText).WithReason(team.ReasonBadText)
	case len(e.Tags) > maxTags || slices.ContainsFunc(e.Tags, func(t string) bool { return t == "" || len(t) > 64 || strings.ContainsFunc(t, bad) }):
		return team.Errorf(team.CodeInvalid, "memory %s: at most %d tags of 1 to 64 characters", e.Key, maxTags).WithReason(team.ReasonBadText)
	}
	return nil
}

// tagList is a set of tags as it is stored: sorted, each once.
func tagList(tags []string) string {
	tags = slices.Clone(tags)
	slices.Sort(tags)
	b, err := json.Marshal(slices.Compact(append([]string{}, tags...)))
	if err != nil {
		panic(err) // strings
	}
	return string(b)
}

type row interface{ Scan(...any) error }

func scan(r row, more ...any) (Entry, error) {
	var e Entry
	var tags string
	if err := r.Scan(append([]any{&e.Key, &e.Text, &tags, &e.Session, &e.CreatedAt, &e.UpdatedAt}, more...)...); err != nil {
		return e, err
	}
	err := json.Unmarshal([]byte(tags), &e.Tags)
	if len(e.Tags) == 0 {
		e.Tags = nil
	}
	return e, err
}
