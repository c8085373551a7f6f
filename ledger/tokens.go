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

// HashToken is what the ledger keeps of a member's secret. A token is 256 random
// bits, so that one round without salt tells nothing of it.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// CheckToken reports whether token is the secret of a session's newest
// generation. One that has left the roster, or never got a token, has none.
func (l *Ledger) CheckToken(ctx context.Context, session, token string) (bool, error) {
	hashes, err := read(ctx, l.db, "read the token of "+session, scanOne[string], sqlTokenGet, session)
	if err != nil || len(hashes) == 0 || hashes[0] == "" || token == "" {
		return false, err
	}
	return subtle.ConstantTimeCompare([]byte(hashes[0]), []byte(HashToken(token))) == 1, nil
}

// setToken replaces the secret of a member in the same step as its generation.
func (t *tx) setToken(session, hash string) error {
	if len(hash) != hex.EncodedLen(sha256.Size) {
		return fmt.Errorf("a token's hash has %d characters", len(hash))
	}
	_, err := t.exec(sqlTokenPut, hash, session)
	return err
}
