package sshd

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// The numbers of messages (RFC 4253, 4252 and 4254).
const (
	msgIgnore         = 2
	msgServiceRequest = 5
	msgKexInit        = 20
	msgNewKeys        = 21
	msgECDHInit       = 30
	msgECDHReply      = 31
	msgUserAuth       = 50
)

// kexInit is the message of RFC 4253, section 7.1.
type kexInit struct {
	Cookie                                     [16]byte `sshtype:"20"`
	Kex, HostKey                               []string
	CipherThere, CipherBack, MACThere, MACBack []string
	CompressThere, CompressBack                []string
	LanguagesThere, LanguagesBack              []string
	FirstKexFollows                            bool
	Reserved                                   uint32
}

// rawClient can send any message at any time, unlike a real client. It supports one algorithm of each kind.
type rawClient struct {
	conn    net.Conn
	r       *bufio.Reader
	offer   kexInit // of the server
	session []byte  // its id
	seal    cipher.AEAD
	nonce   []byte
}

const rawVersion = "SSH-2.0-raw"

// hello exchanges versions.
func (c *rawClient) hello() error {
	c.r = bufio.NewReader(c.conn)
	line, err := c.r.ReadString('\n')
	if err == nil && line != Version+"\r\n" {
		err = fmt.Errorf("the server says it is %q", line)
	}
	if err == nil {
		_, err = io.WriteString(c.conn, rawVersion+"\r\n")
	}
	return err
}

// send sends a message: in the clear until exchange has returned.
func (c *rawClient) send(payload []byte) error {
	const block = 16
	head := 5
	if c.seal != nil {
		head = 1 // the length is not encrypted, and does not count
	}
	padding := block - (head+len(payload))%block
	if padding < 4 {
		padding += block
	}
	packet := binary.BigEndian.AppendUint32(nil, uint32(1+len(payload)+padding))
	packet = append(append(append(packet, byte(padding)), payload...), make([]byte, padding)...)
	if c.seal != nil {
		packet = c.seal.Seal(packet[:4:4], c.nonce, packet[4:], packet[:4])
		binary.BigEndian.PutUint64(c.nonce[4:], binary.BigEndian.Uint64(c.nonce[4:])+1)
	}
	_, err := c.conn.Write(packet)
	return err
}

// receive reads an unencrypted message.
func (c *rawClient) receive(want byte) ([]byte, error) {
	var size uint32
	if err := binary.Read(c.r, binary.BigEndian, &size); err != nil {
		return nil, err
	}
	if size > 1<<16 {
		return nil, fmt.Errorf("a message of %d bytes", size)
	}
	packet := make([]byte, size)
	if _, err := io.ReadFull(c.r, packet); err != nil {
		return nil, err
	}
	if int(packet[0])+2 > len(packet) || packet[1] != want {
		return nil, fmt.Errorf("not message %d, but %q", want, packet)
	}
	return packet[1 : len(packet)-int(packet[0])], nil
}

// readOffer reads the algorithms that the server offers.
func (c *rawClient) readOffer() ([]byte, error) {
	payload, err := c.receive(msgKexInit)
	if err == nil {
		err = ssh.Unmarshal(payload, &c.offer)
	}
	return payload, err
}

func rawOffer(extra ...string) []byte {
	gcm, none := []string{ssh.CipherAES128GCM}, []string{"none"}
	return ssh.Marshal(kexInit{Kex: append([]string{"curve25519-sha256"}, extra...), HostKey: []string{ssh.KeyAlgoED25519},
		CipherThere: gcm, CipherBack: gcm, MACThere: []string{ssh.HMACSHA256ETM}, MACBack: []string{ssh.HMACSHA256ETM},
		CompressThere: none, CompressBack: none})
}

// exchange exchanges keys.
func (c *rawClient) exchange() error {
	theirs, err := c.readOffer()
	if err != nil {
		return err
	}
	ours := rawOffer()
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	public := private.PublicKey().Bytes()
	if err := errors.Join(c.send(ours), c.send(ssh.Marshal(struct {
		Public []byte `sshtype:"30"`
	}{public}))); err != nil {
		return err
	}
	payload, err := c.receive(msgECDHReply)
	if err != nil {
		return err
	}
	var reply struct {
		HostKey, Public, Signature []byte `sshtype:"31"`
	}
	if err := ssh.Unmarshal(payload, &reply); err != nil {
		return err
	}
	server, err := ecdh.X25519().NewPublicKey(reply.Public)
	if err != nil {
		return err
	}
	secret, err := private.ECDH(server)
	if err != nil {
		return err
	}
	c.session, err = c.derive(new(big.Int).SetBytes(secret), ours, theirs, reply.HostKey, public, reply.Public)
	if err != nil {
		return err
	}
	if _, err := c.receive(msgNewKeys); err != nil {
		return err
	}
	seal := c.seal
	c.seal = nil // this message is not encrypted yet
	err = c.send([]byte{msgNewKeys})
	c.seal = seal
	return err
}

// derive derives the keys of this direction, and returns the session ID (RFC 4253, sections 7.2 and 8).
func (c *rawClient) derive(secret *big.Int, ours, theirs, hostKey, public, serverPublic []byte) ([]byte, error) {
	hash := sha256.Sum256(ssh.Marshal(struct {
		ClientVersion, ServerVersion                            string
		ClientOffer, ServerOffer, HostKey, Public, ServerPublic []byte
		Secret                                                  *big.Int
	}{rawVersion, Version, ours, theirs, hostKey, public, serverPublic, secret}))
	key := func(letter byte) []byte {
		sum := sha256.Sum256(slices.Concat(ssh.Marshal(struct{ K *big.Int }{secret}), hash[:], []byte{letter}, hash[:]))
		return sum[:]
	}
	block, err := aes.NewCipher(key('C')[:16])
	if err != nil {
		return nil, err
	}
	c.nonce = key('A')[:12]
	c.seal, err = cipher.NewGCM(block)
	return hash[:], err
}

// authenticate asks to log in with a key. It does not read the answer of the server.
func (c *rawClient) authenticate(user string, key ssh.Signer) error {
	request := struct {
		User, Service, Method string `sshtype:"50"`
		Signed                bool
		Algorithm             string
		Key                   []byte
	}{user, "ssh-connection", "publickey", true, key.PublicKey().Type(), key.PublicKey().Marshal()}
	signature, err := key.Sign(rand.Reader, append(ssh.Marshal(struct{ ID []byte }{c.session}), ssh.Marshal(request)...))
	if err != nil {
		return err
	}
	service := ssh.Marshal(struct {
		Name string `sshtype:"5"`
	}{"ssh-userauth"})
	signed := append(ssh.Marshal(request), ssh.Marshal(struct{ S []byte }{ssh.Marshal(signature)})...)
	return errors.Join(c.send(service), c.send(signed))
}

// weakParts are parts of the names of weak algorithms.
var weakParts = []string{"sha1", "md5", "cbc", "3des", "arcfour", "blowfish", "dss", "diffie-hellman", "none", "ripemd", "umac-64", "-96"}

// weakOnes returns the weak algorithms of an offer.
func (k *kexInit) weakOnes() (found []string) {
	for _, name := range slices.Concat(k.Kex, k.HostKey, k.CipherThere, k.CipherBack, k.MACThere, k.MACBack) {
		if slices.ContainsFunc(weakParts, func(part string) bool { return strings.Contains(name, part) }) || name == "ssh-rsa" {
			found = append(found, name)
		}
	}
	return found
}

// messages splits data into messages. The length of each one is in the two bytes before it.
func messages(data []byte) (all [][]byte) {
	for len(data) > 2 {
		size := int(binary.BigEndian.Uint16(data))
		data = data[2:]
		size = min(size, len(data))
		all = append(all, data[:size])
		data = data[size:]
	}
	return all
}

// asMessages is the opposite of messages.
func asMessages(all ...[]byte) (data []byte) {
	for _, message := range all {
		data = append(binary.BigEndian.AppendUint16(data, uint16(len(message))), message...)
	}
	return bytes.Clone(data)
}
