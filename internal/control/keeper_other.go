//go:build !linux

package control

func handleOf(string) int { return -1 }

func closeHandle(int) {}

func handleLinks(int) int { return -1 }
