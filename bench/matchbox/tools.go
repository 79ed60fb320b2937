//go:build tools

// Package tools pins the peer that the benchmark builds; go.sum holds the checksums of all that it consists of.
package tools

import _ "github.com/poseidon/matchbox/cmd/matchbox"
