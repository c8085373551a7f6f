package ledger

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
)

const (
	sqlTokenGet = `SELECT tokenHash FROM members WHERE sessionKey = ? AND removedAt IS NULL`
	sqlTokenPut = `UPDATE members SET tokenHash = ? WHERE sessionKey = ?`
)

// HashToken returns the form in which the ledger stores a member's secret. A
// token has 256 random bits, so one round without salt reveals nothing.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// CheckToken reports whether token is the secret of a session's newest
// generation. It is false for a session that has left the roster or never got a
// token.
func (l *Ledger) CheckToken(ctx context.Context, session, token string) (bool, error) {
	hashes, err := read(ctx, l.db, "read the token of "+session, scanOne[string], sqlTokenGet, session)
	if err != nil || len(hashes) == 0 || hashes[0] == "" || token == "" {
		return false, err
	}
	return subtle.ConstantTimeCompare([]byte(hashes[0]), []byte(HashToken(token))) == 1, nil
}

// setToken replaces the secret of a member together with its generation.
func (t *tx) setToken(session, hash string) error {
	if len(hash) != hex.EncodedLen(sha256.Size) {
		return fmt.Errorf("a token's hash has %d characters", len(hash))
	}
	_, err := t.exec(sqlTokenPut, hash, session)
	return err
}
