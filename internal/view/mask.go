package view

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// masked replaces a secret.
const masked = "[masked]"

// likely matches the forms of well-known secrets.
var likely = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abeprs]-[\w-]{10,}` +
		`|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bya29\.[\w-]{20,}|\bnpm_[A-Za-z0-9]{30,}|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*` +
		`|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
})

// named matches values after a name that indicates a secret, and passwords in URLs.
var named = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)((?:[\w-]*(?:api[_-]?key|token|secret|passwd|password|credential)[\w-]*["']?\s*[:=]\s*|authorization:\s*(?:bearer|basic)\s+|bearer\s+)["']?)([^\s"',;]{6,})|(://[^\s/:@]*:)([^\s/@]+)(@)`)
})

// Mask removes secrets and the user's directories from texts. The zero value knows only the usual
// forms of secrets.
type Mask struct{ pairs []string }

// NewMask returns a Mask for the values of an environment, "NAME=value", and for directories with
// their replacements.
func NewMask(env []string, dirs map[string]string) Mask {
	var m Mask
	seen := map[string]bool{}
	type pair struct{ from, to string }
	var list []pair
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if secretValue(name, value) && !seen[value] {
			seen[value] = true
			list = append(list, pair{value, masked})
		}
	}
	for dir, short := range dirs {
		if len(dir) > 1 {
			list = append(list, pair{dir, short})
		}
	}
	// Longest first: one may be a prefix of another.
	slices.SortFunc(list, func(a, b pair) int {
		if len(a.from) != len(b.from) {
			return len(b.from) - len(a.from)
		}
		return strings.Compare(a.from, b.from)
	})
	for _, p := range list {
		m.pairs = append(m.pairs, p.from, p.to)
	}
	return m
}

// secretValue reports whether the value of a variable must be hidden: its name indicates a secret,
// or it looks like a key. Words and paths are not, since masking them would make the report
// useless.
func secretValue(name, value string) bool {
	if len(value) < 6 {
		return false
	}
	up := strings.ToUpper(name)
	for _, w := range []string{"KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH"} {
		if strings.Contains(up, w) && !strings.HasPrefix(value, "/") && strings.Trim(value, "0123456789") != "" {
			return true
		}
	}
	return len(value) >= 20 && strings.ContainsAny(value, "0123456789") && strings.ContainsAny(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") &&
		!strings.ContainsAny(value, "/ :,;=.")
}

// Text returns a text without secrets and with short paths.
func (m Mask) Text(s string) string {
	if s == "" {
		return s
	}
	s = strings.NewReplacer(m.pairs...).Replace(s)
	s = likely().ReplaceAllString(s, masked)
	return named().ReplaceAllStringFunc(s, func(hit string) string {
		parts := named().FindStringSubmatch(hit)
		if parts[3] != "" {
			return parts[3] + masked + parts[5]
		}
		if strings.HasPrefix(parts[2], masked) {
			return hit
		}
		return parts[1] + masked
	})
}

// All masks every text reachable from v, a pointer.
func (m Mask) All(v any) { m.walk(reflect.ValueOf(v)) }

func (m Mask) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			m.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				m.walk(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			m.walk(v.Index(i))
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(m.Text(v.String()))
		}
	default: // numbers, times; maps of a report contain no texts
	}
}

// decimals formats an amount of dollars.
func decimals(x float64) string { return fmt.Sprintf("%.2f", x) }

// thousands formats a count: 950, 1.2k, 3.4M.
func thousands(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}
