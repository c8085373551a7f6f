//go:build !linux

package worktree

import "errors"

func mountTiny(string) error { return errors.ErrUnsupported }
