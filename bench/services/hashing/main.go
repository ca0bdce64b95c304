// Goservice answers each request to a port with a hash that takes a known amount of work.
package main

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
)

func main() {
	rounds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.Sum256([]byte(r.URL.Path))
		block := make([]byte, 4096)
		for range rounds {
			copy(block, sum[:])
			sum = sha256.Sum256(block)
		}
		fmt.Fprintf(w, "%x\n", sum)
	})))
}
