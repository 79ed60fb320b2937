// What Go's crypto/x509, and so Kubernetes' signer, reads in certificate requests: PEM on stdin, each after its length
// in four bytes; one line of JSON for each. Tests compare it with tokens/pkcs10.py.
package main

import (
	"bufio"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"os"
)

type reading struct {
	Refused      string   `json:"refused"`
	Organization []string `json:"organization"`
	CommonName   string   `json:"common_name"`
	Parts        int      `json:"parts"`
	Names        []string `json:"names"`
	Addresses    [][]byte `json:"addresses"`
	Others       int      `json:"others"`
	Extensions   int      `json:"extensions"`
	Key          []byte   `json:"key"`
}

func read(data []byte) (*reading, error) {
	block, rest := pem.Decode(data) // as k8s.io/kubernetes/pkg/apis/certificates ParseCSR does
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(block.Headers) != 0 {
		return nil, errors.New("no PEM block of a certificate request")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKIXPublicKey(csr.PublicKey)
	r := &reading{Organization: csr.Subject.Organization, CommonName: csr.Subject.CommonName, Parts: len(csr.Subject.Names),
		Names: csr.DNSNames, Others: len(rest) + len(csr.EmailAddresses) + len(csr.URIs), Extensions: len(csr.Extensions), Key: key}
	for _, ip := range csr.IPAddresses {
		r.Addresses = append(r.Addresses, ip)
	}
	return r, err
}

func main() {
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for length := uint32(0); binary.Read(in, binary.BigEndian, &length) == nil; {
		data, _ := io.ReadAll(io.LimitReader(in, int64(length)))
		if r, err := read(data); err != nil {
			_ = out.Encode(&reading{Refused: err.Error()})
		} else {
			_ = out.Encode(r)
		}
	}
}
