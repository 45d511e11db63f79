package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"sync"
)

// executable returns the default of Config.Program: a digest of the running executable, "" if it
// cannot be read. Workers of the same program return the same, and a program that was built from other code
// returns another.
var executable = sync.OnceValue(func() string {
	name, err := os.Executable()
	if err != nil {
		return ""
	}
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return ""
	}
	return hex.EncodeToString(digest.Sum(nil))[:16]
})
