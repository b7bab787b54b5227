#!/usr/bin/with-contenv bash
mkdir -p /config
