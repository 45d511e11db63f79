package wire

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
)

// Liar replies to every script with one value.
type Liar struct{ Says any }

// DialHook changes nothing.
func (*Liar) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook changes nothing.
func (*Liar) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook replies to a script.
func (l *Liar) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if script, ok := cmd.(interface{ SetVal(any) }); ok && lua.IsVerb(cmd.Name()) {
			script.SetVal(l.Says)
			return nil
		}
		return next(ctx, cmd)
	}
}

// Encode appends a reply to b as bytes.
func Encode(b []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		return binary.BigEndian.AppendUint64(append(b, 1), uint64(v))
	case string:
		return append(append(b, 2, byte(len(v))), v...)
	case []any:
		b = append(b, 3, byte(len(v)))
		for _, e := range v {
			b = Encode(b, e)
		}
		return b
	case float64:
		return append(b, 4)
	case bool:
		return append(b, 5)
	case error:
		return append(b, 6)
	case map[any]any:
		return append(b, 7)
	}
	return append(b, 0)
}

// Decode reverses Encode. All bytes can be decoded. depth is 0.
func Decode(b []byte, depth int) (any, []byte) {
	if len(b) == 0 || depth > 6 {
		return nil, nil
	}
	kind, b := b[0], b[1:]
	switch kind % 8 {
	case 1:
		var n [8]byte
		b = b[copy(n[:], b):]
		return int64(binary.BigEndian.Uint64(n[:])), b
	case 2, 3:
		if len(b) == 0 {
			return "", nil
		}
		n := int(b[0])
		b = b[1:]
		if kind%8 == 2 {
			n = min(n, len(b))
			return string(b[:n]), b[n:]
		}
		list := []any{}
		for i := 0; i < n && len(b) > 0; i++ {
			var e any
			e, b = Decode(b, depth+1)
			list = append(list, e)
		}
		return list, b
	case 4:
		return 1.5, b
	case 5:
		return true, b
	case 6:
		return errors.New("ERR"), b
	case 7:
		return map[any]any{"OK": int64(1)}, b
	}
	return nil, b
}
