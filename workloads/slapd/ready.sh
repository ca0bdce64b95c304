#!/bin/sh
# ready.sh ADDRESS PORT: true when the server finds an entry.
ldapsearch -x -LLL -o nettimeout=2 -H "ldap://$1:$2" -b dc=tare '(uid=0)' uid | grep -qx 'uid: 0'
