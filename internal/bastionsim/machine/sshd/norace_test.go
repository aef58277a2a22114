//go:build !race

package sshd

const raceDetector = false
