package supervisor

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/team"
)

// NewToken returns a member's secret: 256 random bits, safe in an environment.
func NewToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: it crashes the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// WriteToken writes a member's secret to its bundle.
func WriteToken(b team.Bundle, token string) error {
	if err := os.MkdirAll(string(b), 0o700); err != nil {
		return team.Errorf(team.CodeUnavailable, "make %s: %w", b, err)
	}
	if err := atomicfile.Write(b.Token(), []byte(token+"\n"), 0o600, false); err != nil {
		return fmt.Errorf("write the token: %w", err)
	}
	return nil
}

// withToken returns an environment with only this generation's secret.
func withToken(env []string, token string) []string {
	const name = team.EnvToken + "="
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, name) })
	return append(out, name+token)
}
