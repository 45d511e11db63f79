// Package newcode deploys new code of an agent over old code, with real binaries and a real Redis.
package newcode
