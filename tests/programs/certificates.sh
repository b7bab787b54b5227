#!/bin/bash
# certificates.sh FOLDER IP: creates a certificate authority, a server and a client certificate in FOLDER.
set -e
cd "$1"
mkdir cas
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.pem -subj /CN=authority 2> /dev/null
cp ca.pem cas/one.pem
echo not a certificate > cas/readme.txt
make() {
    openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1" 2> /dev/null
    printf 'subjectAltName=DNS:server.dc1.consul,IP:%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$2" > "$1.ext"
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile "$1.ext" -out "$1.pem" \
        2> /dev/null
}
make server "$2"
make client "$2"
make misnamed 127.255.0.9
