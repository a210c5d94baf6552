#!/bin/sh
# Installs Java 17 from Debian's packages, if Java is missing and this is permitted. Without Java, Spark is not tested.
command -v java > /dev/null && exit 0
run=""
if [ "$(id -u)" != 0 ]; then
    sudo -n true 2> /dev/null && run="sudo -n"
    [ -n "$run" ] || { echo "Java 17 is missing; the tests of Spark are skipped" >&2; exit 0; }
fi
command -v apt-get > /dev/null || { echo "Java 17 is missing; the tests of Spark are skipped" >&2; exit 0; }
echo "installing Java 17 from the packages of this system"
export DEBIAN_FRONTEND=noninteractive
$run apt-get update -qq > /dev/null
$run apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless > /dev/null
exit 0
