//go:build unix

package redisproc

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // it would log every connection that these tests cut
	m.Run()
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
