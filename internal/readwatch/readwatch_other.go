//go:build !linux

package readwatch

import (
	"errors"
	"fmt"
)

func watch(dir string, _ func(Event)) (*Watcher, error) {
	return nil, fmt.Errorf("watch reads in %s: %w", dir, errors.ErrUnsupported)
}
