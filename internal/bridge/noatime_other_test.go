//go:build !linux

package bridge

const noAccessTime = 0
