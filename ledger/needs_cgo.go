//go:build !cgo

package ledger

import _ "embed"

// SQLite is C source. Without cgo its Go package is empty, and each use of it
// is a compile error of its own. The pattern below matches no file, which the
// go command reports before it compiles anything, so only its text is printed.
//
//go:embed "SQLite needs cgo. Install a C compiler (gcc) and build with CGO_ENABLED=1"
var _ string
