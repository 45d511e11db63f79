// Package hostile holds tests alone: what Curfew's calls do with arguments that nobody
// should send, and for users who lack a right.
package hostile
