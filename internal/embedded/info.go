package embedded

import (
	"fmt"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// serveInfo makes INFO tell that this is the embedded server: miniredis does not have the section.
func (s *Server) serveInfo() {
	srv := s.mini.Server()
	srv.SetPreHook(func(c *server.Peer, command string, args ...string) bool {
		all := len(args) == 0
		if command != "INFO" || !all && !(len(args) == 1 && strings.EqualFold(args[0], "server")) {
			return false
		}
		about := "# Server\r\nredis_mode:standalone\r\ncurfew_embedded:1\r\n"
		if all {
			about += fmt.Sprintf("# Clients\r\nconnected_clients:%d\r\n", srv.ClientsLen())
		}
		srv.Dispatch(c, []string{"EVAL", "return ARGV[1]", "0", about}) // in a transaction the reply is that to EXEC
		return true
	})
}
