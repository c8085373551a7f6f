// Package glob is for paths in patterns: a directory may have the characters of a pattern in its
// name, and filepath.Glob finds nothing below it then, without an error.
package glob

import "strings"

// Escape returns the pattern that matches s alone.
func Escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}
