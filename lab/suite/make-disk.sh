#!/bin/sh
# make-disk.sh SYSTEM_MIB RESULTS_MIB: in this folder, makes disk.raw of the folder system, which has the files of the system that boots. It runs in that
# system's own root, so that the tools are Debian's, of one release. The kernel is booted by GRUB, on a BIOS and on UEFI.
set -eu
system_mib=$1 results_mib=$2
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
mib=2048 # sectors of 512 bytes
efi_mib=40 # the least that UEFI's FAT32 can have
bios=$mib efi=$((2 * mib)) results=$(((2 + efi_mib) * mib))
system=$(((2 + efi_mib + results_mib) * mib))

rm -f disk.raw
truncate -s "$((2 + efi_mib + results_mib + system_mib + 1))M" disk.raw # the last one has the table's copy
sfdisk --quiet disk.raw <<END
label: gpt
start=$bios, size=$mib, type=21686148-6449-6E6F-744E-656564454649, name=bios
start=$efi, size=$((efi_mib * mib)), type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B, name=efi
start=$results, size=$((results_mib * mib)), type=0FC63DAF-8483-4772-8E79-3D69D8477DE4, name=tare-results
start=$system, size=$((system_mib * mib)), type=0FC63DAF-8483-4772-8E79-3D69D8477DE4, name=tare-system
END

# Of the newest features GRUB knows not all.
mke2fs -q -F -t ext4 -L tare-system -O ^metadata_csum_seed,^orphan_file -m 0 -E "offset=$((system * 512)),lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0" \
	-d system disk.raw "$((system_mib))M"

kernel=$(cd system/boot && echo vmlinuz-*) initrd=$(cd system/boot && echo initrd.img-*)
cat >boot.cfg <<END
serial --unit=0 --speed=115200
terminal_output console serial
search --no-floppy --label --set=root tare-system
echo "Tare: $kernel"
linux /boot/$kernel root=LABEL=tare-system rw console=tty0 console=ttyS0,115200 quiet panic=60 systemd.firstboot=off
initrd /boot/$initrd
boot
END
common="part_gpt ext2 search search_label linux echo serial terminal minicmd"
# shellcheck disable=SC2086
grub-mkimage -O i386-pc -o core.img -c boot.cfg -p /boot/grub biosdisk $common
# shellcheck disable=SC2086
grub-mkimage -O x86_64-efi -o bootx64.efi -c boot.cfg -p /boot/grub $common efi_gop all_video

mkfs.vfat -F 32 -s 1 --offset "$efi" -n TARE-EFI disk.raw "$((efi_mib * 1024))" >made.txt
export MTOOLS_SKIP_CHECK=1
mmd -i "disk.raw@@$((efi * 512))" ::/EFI ::/EFI/BOOT
mcopy -i "disk.raw@@$((efi * 512))" bootx64.efi ::/EFI/BOOT/BOOTX64.EFI

# GRUB's boot sector finds the core by the number of its first sector, and the core's first sector the rest by the number of the next: 8 bytes each, the lowest
# first, as grub-bios-setup writes them (where it finds a disk and not a file).
little() {
	n=$1
	for _ in 1 2 3 4 5 6 7 8; do
		# shellcheck disable=SC2059
		printf "\\$(printf %03o $((n & 255)))"
		n=$((n >> 8))
	done
}
[ "$(wc -c <core.img)" -le $((mib * 512)) ]
dd if=/usr/lib/grub/i386-pc/boot.img of=disk.raw bs=440 count=1 conv=notrunc status=none
little "$bios" | dd of=disk.raw bs=1 seek=$((0x5c)) conv=notrunc status=none
little $((bios + 1)) | dd of=core.img bs=1 seek=$((0x1f4)) conv=notrunc status=none
dd if=core.img of=disk.raw bs=512 seek="$bios" conv=notrunc status=none
