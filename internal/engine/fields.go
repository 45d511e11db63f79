package engine

import "context"

// Fields reads a hash of any size, some 500 fields at a time. It is not a snapshot: fields may change while it reads.
func (e *Engine) Fields(ctx context.Context, key string) (map[string]string, error) {
	fields := map[string]string{}
	for cursor := uint64(0); ; {
		words, next, err := e.rdb.HScan(ctx, key, cursor, "", 500).Result()
		if err != nil {
			return nil, err
		}
		for i := 0; i+1 < len(words); i += 2 {
			fields[words[i]] = words[i+1]
		}
		if cursor = next; cursor == 0 {
			return fields, nil
		}
	}
}
