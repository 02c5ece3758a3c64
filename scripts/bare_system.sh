# A bare Debian or Ubuntu in a folder of its own. Shared by check_package and check_container: sourced after steps.sh, not run.
#
# What its caller may set:
mirror=""   # the archive that the system comes from; empty: that of this machine's own sources, else UBUNTU_MIRROR of the environment
keyring=""  # the keys that sign it; empty: those that Debian and Ubuntu install for their own archives, or UBUNTU_KEYRING for Ubuntu's
bare=""     # the folder

# What could not be tried is neither passed nor failed.
not_run() {
  printf '\n%s: not run: %s\n' "$(basename "$0")" "$*" >&2
  exit 77
}

need_root() {
  if ((EUID != 0)); then fail "must be root: a system of its own is mounted"; fi
}

bare_folder() {
  bare=$(mktemp -d)
  chmod 755 "$bare" # for apt, which fetches as nobody
  trap remove_bare_folder EXIT
}
remove_bare_folder() {
  if mountpoint -q "$bare/proc" && ! umount "$bare/proc"; then
    echo "$(basename "$0"): $bare/proc is still mounted; umount it and remove $bare" >&2
    return
  fi
  rm -rf --one-file-system "$bare" "$bare.log"
}

# option_value OPTION [VALUE]: the value, which must be there.
option_value() {
  if (($# < 2)); then
    echo "$(basename "$0"): $1 needs a value; see $(basename "$0") --help" >&2
    exit 2
  fi
  echo "$2"
}

this_suite() { (. /etc/os-release && echo "$VERSION_CODENAME"); }

# bare_system SUITE: made in $bare by debootstrap, with apt's sources as here where it is of this machine's suite.
bare_system() {
  local suite=$1 file origin components script sources_of_this_machine=no
  if [[ -z $mirror ]]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $suite" | head -1)
    if [[ -n $mirror ]]; then sources_of_this_machine=yes; fi
    mirror=${mirror:-${UBUNTU_MIRROR:-}}
    [[ -n $mirror ]] || not_run "this machine's sources have no mirror of $suite: name one, --mirror URL"
  fi
  # apt's own client asks, with the proxies and passwords that it is set up with.
  /usr/lib/apt/apt-helper download-file "${mirror%/}/dists/$suite/InRelease" "$bare.log" >/dev/null 2>&1 ||
    not_run "nothing answers at ${mirror%/}/dists/$suite/InRelease"
  origin=$(sed -n 's/^Origin: //p' "$bare.log")
  case $origin in
    # casacore and cfitsio are in Ubuntu's universe. The script's name is that of the oldest suite that is made like those of today.
    Ubuntu) components=main,universe script=gutsy keyring=${keyring:-${UBUNTU_KEYRING:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}} ;;
    *) components=main script=sid keyring=${keyring:-/usr/share/keyrings/debian-archive-keyring.gpg} ;;
  esac
  [[ -f $keyring ]] ||
    not_run "there is no $keyring, without which nobody knows whether $suite is $origin's: install the package of that name (Debian 13 has that of Ubuntu), or name a file, --keyring FILE"
  debootstrap --variant=minbase --force-check-gpg --keyring="$keyring" --components="$components" \
    "$suite" "$bare" "$mirror" "$script" >"$bare.log" 2>&1 || {
    tail "$bare.log" >&2
    fail "debootstrap could not make a bare $suite; its message is above"
  }
  if [[ $sources_of_this_machine == yes ]]; then
    rm "$bare/etc/apt/sources.list"
    cp -r /etc/apt/. "$bare/etc/apt/"
  else
    for file in /etc/apt/apt.conf* /etc/apt/auth.conf*; do # proxies and passwords, where there are some
      if [[ -e $file ]]; then cp -r "$file" "$bare/etc/apt/"; fi
    done
    cp "$keyring" "$bare/etc/apt/trusted.gpg.d/"
  fi
  mount -t proc proc "$bare/proc"
}
