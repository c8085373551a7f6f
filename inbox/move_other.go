//go:build !linux

package inbox

import (
	"errors"
	"os"
)

const canMove = false

func moveIn(*os.Root, string, string) error { return errors.ErrUnsupported }

func moveOut(*os.Root, string, string) error { return errors.ErrUnsupported }
