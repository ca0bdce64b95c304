<?php
// Sets WordPress up and writes the site. A generator with a fixed seed makes the text from a few words, so it is the same
// everywhere.
$_SERVER['HTTP_HOST']       = 'localhost';
$_SERVER['REQUEST_METHOD']  = 'GET';
$_SERVER['REQUEST_URI']     = '/';
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';

// Replaces WordPress's own functions: no first post, no mail.
function wp_install_defaults( $user ) {}
function wp_new_blog_notification( ...$ignored ) {}

define( 'WP_INSTALLING', true );
require getenv( 'TARE_WORK' ) . '/site.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';

const WORDS = array(
	'harbour', 'lantern', 'water', 'morning', 'road', 'window', 'letter', 'island', 'market', 'winter', 'ferry', 'stone',
	'garden', 'river', 'bread', 'summer', 'tower', 'bridge', 'cloud', 'field', 'music', 'story', 'table', 'village',
	'walks', 'sees', 'carries', 'opens', 'follows', 'keeps', 'leaves', 'finds', 'waits', 'turns', 'the', 'a', 'one',
	'old', 'quiet', 'long', 'bright', 'slow', 'small', 'near', 'under', 'over', 'with', 'before', 'after', 'and',
);
const POSTS = array(
	'The quiet harbour', 'A road through the hills', 'Letters from the island', 'Winter market', 'The last ferry',
	'Bread and salt', 'The bell tower', 'Rain on the river', 'An open window', 'The stone bridge', 'Summer by the lake',
	'The garden wall', 'Songs for the evening', 'The lantern maker',
);
const PAGES = array( 'About', 'Contact', 'Archive' );

function done( $what, $result ) {
	if ( is_wp_error( $result ) ) {
		$result = $result->get_error_message();
	} elseif ( $result ) {
		return $result;
	}
	fwrite( STDERR, "seeding: $what: " . ( $result ?: 'WordPress refused it' ) . "\n" );
	exit( 1 );
}

function sentence() {
	$words = array();
	for ( $n = mt_rand( 6, 16 ); $n > 0; $n-- ) {
		$words[] = WORDS[ mt_rand( 0, count( WORDS ) - 1 ) ];
	}
	return ucfirst( implode( ' ', $words ) ) . '.';
}

function paragraph() {
	$sentences = array();
	for ( $n = mt_rand( 3, 7 ); $n > 0; $n-- ) {
		$sentences[] = sentence();
	}
	return implode( ' ', $sentences );
}

function text() {
	$blocks = array();
	for ( $n = mt_rand( 5, 9 ); $n > 0; $n-- ) {
		$blocks[] = "<!-- wp:paragraph -->\n<p>" . paragraph() . "</p>\n<!-- /wp:paragraph -->";
	}
	return implode( "\n\n", $blocks );
}

// Makes a picture of about 25 kB: hills and a moon, with the grain of a photograph.
function picture( $file ) {
	list( $w, $h ) = array( 1024, 640 );
	$image = imagecreatetruecolor( $w, $h );
	$tint  = mt_rand( 0, 80 );
	for ( $y = 0; $y < $h; $y++ ) {
		imageline( $image, 0, $y, $w, $y, imagecolorallocate( $image, 30 + $tint, 60 + intdiv( $y, 6 ), 120 + intdiv( $y, 8 ) ) );
	}
	imagefilledellipse( $image, mt_rand( 100, $w - 100 ), mt_rand( 80, 200 ), 90, 90, imagecolorallocate( $image, 240, 235, 210 ) );
	for ( $hill = 0; $hill < 6; $hill++ ) {
		$green = imagecolorallocate( $image, 20 + 8 * $hill, 90 - 8 * $hill, 60 + $tint / 2 );
		imagefilledellipse( $image, mt_rand( 0, $w ), $h + mt_rand( 0, 60 ), mt_rand( 400, 900 ), mt_rand( 200, 520 ), $green );
	}
	for ( $n = 0; $n < 40000; $n++ ) {
		list( $x, $y ) = array( mt_rand( 0, $w - 1 ), mt_rand( 0, $h - 1 ) );
		imagesetpixel( $image, $x, $y, imagecolorat( $image, $x, $y ) ^ 0x0f0f0f );
	}
	done( "the picture $file", imagejpeg( $image, $file, 82 ) );
}

mt_srand( 20240101 );
wp_install( 'The Harbour Notes', 'keeper', 'keeper@example.org', true, '', 'keeper' );
update_option( 'blogdescription', 'A simple website' );
update_option( 'moderation_notify', 0 ); // sends no mail
update_option( 'default_pingback_flag', 0 );
update_option( 'posts_per_page', 10 );

global $wp_rewrite;
$wp_rewrite->set_permalink_structure( '/%postname%/' );

$category = array();
foreach ( array( 'General', 'Journeys' ) as $name ) {
	$category[ $name ] = done( "the category $name", wp_insert_term( $name, 'category' ) )['term_id'];
}
update_option( 'default_category', $category['General'] );

// One post a day from 2024-03-01.
foreach ( POSTS as $i => $title ) {
	$day  = sprintf( '2024-03-%02d 09:00:00', $i + 1 );
	$shot = "/pictures/$i.jpg";
	picture( getenv( 'TARE_SCRATCH' ) . "/state/site$shot" );
	$post = done(
		"the post $title",
		wp_insert_post(
			array(
				'post_author'   => 1,
				'post_title'    => $title,
				'post_content'  => "<!-- wp:image -->\n<figure class=\"wp-block-image\"><img src=\"$shot\" alt=\"\"/></figure>\n<!-- /wp:image -->\n\n" . text(),
				'post_status'   => 'publish',
				'post_date'     => $day,
				'post_date_gmt' => $day,
				'post_category' => array( $category[ $i % 2 ? 'General' : 'Journeys' ] ),
			),
			true
		)
	);
	for ( $n = 1; $n <= 2 + $i % 4; $n++ ) {
		$at = sprintf( '2024-03-%02d %02d:00:00', $i + 1, 9 + $n );
		done(
			"a comment on $title",
			wp_insert_comment(
				array(
					'comment_post_ID'      => $post,
					'comment_author'       => ucfirst( WORDS[ ( $i * 5 + $n ) % count( WORDS ) ] ) . ' Reader',
					'comment_author_email' => "reader$n@example.org",
					'comment_content'      => paragraph(),
					'comment_date'         => $at,
					'comment_date_gmt'     => $at,
					'comment_approved'     => 1,
				)
			)
		);
	}
}
foreach ( PAGES as $i => $title ) {
	done(
		"the page $title",
		wp_insert_post(
			array(
				'post_author'   => 1,
				'post_title'    => $title,
				'post_content'  => text(),
				'post_type'     => 'page',
				'post_status'   => 'publish',
				'menu_order'    => $i,
				'post_date'     => '2024-02-01 09:00:00',
				'post_date_gmt' => '2024-02-01 09:00:00',
			),
			true
		)
	);
}
// The first request makes the rules again. Here those for categories are missing, because WordPress began without permalinks.
delete_option( 'rewrite_rules' );
